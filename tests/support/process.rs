//! A program in the foreground: started, awaited, read and ended.

use std::fs::{self, File};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

/// How long anything may take on a loaded machine, in steps of [`STEP`].
const PATIENCE: usize = 1500;
const STEP: Duration = Duration::from_millis(20);

/// How often a start is tried again when the port was taken in the meantime.
const STARTS: usize = 3;

/// What a program is given: a folder of its own and free ports.
pub(crate) struct Ground {
    pub(crate) folder: TempDir,
    pub(crate) ports: Vec<u16>,
}

impl Ground {
    fn new(ports: usize) -> Self {
        let folder = tempfile::Builder::new().prefix("longhaul-").tempdir().unwrap();
        // Daemons that were started as root give it up and must still reach their files.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        // All are held at once, so that they differ.
        let held: Vec<_> =
            (0..ports).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()).collect();
        let ports = held.iter().map(|port| port.local_addr().unwrap().port()).collect();
        Self { folder, ports }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file and gives its path, for a configuration.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path.display().to_string()
    }

    /// The path of a file that the program makes itself.
    pub(crate) fn place(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }
}

/// A running program; ends when dropped.
pub(crate) struct Program {
    name: String,
    child: Child,
    ground: Ground,
}

impl Program {
    /// Starts `program` and waits until all its ports accept.
    ///
    /// `prepare` writes the configuration and gives the arguments; it is asked again, with new
    /// ports, when the program ends at once.
    pub(crate) fn start(
        program: &Path,
        ports: usize,
        prepare: impl Fn(&Ground) -> Vec<String>,
    ) -> Self {
        Self::start_in(program, &[], ports, prepare)
    }

    /// The same, with these variables added to the environment.
    pub(crate) fn start_in(
        program: &Path,
        environment: &[(String, String)],
        ports: usize,
        prepare: impl Fn(&Ground) -> Vec<String>,
    ) -> Self {
        let name = program.file_name().unwrap().to_string_lossy().into_owned();
        let mut last = String::new();
        for _ in 0..STARTS {
            let ground = Ground::new(ports);
            let arguments = prepare(&ground);
            let output = File::create(ground.path("output.log")).unwrap();
            let child = Command::new(program)
                .args(&arguments)
                .envs(environment.iter().cloned())
                .current_dir(ground.folder.path())
                .stdin(Stdio::null())
                .stdout(output.try_clone().unwrap())
                .stderr(output)
                .process_group(0)
                .spawn()
                .unwrap_or_else(|error| panic!("{} cannot be started: {error}", program.display()));
            let mut started = Self { name: name.clone(), child, ground };
            match started.wait_for_ports() {
                Ok(()) => return started,
                Err(why) => last = format!("{why}\n{}", started.logs()),
            }
        }
        panic!("{name} does not come up: {last}");
    }

    fn wait_for_ports(&mut self) -> Result<(), String> {
        for port in self.ground.ports.clone() {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            let mut state = "silent";
            let accepts = eventually(|| {
                if self.child.try_wait().unwrap().is_some() {
                    state = "ended";
                    return true;
                }
                TcpStream::connect(address).is_ok()
            });
            if !accepts || state == "ended" {
                return Err(format!("{} {state}, port {port}", self.name));
            }
        }
        Ok(())
    }

    pub(crate) fn address(&self, number: usize) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.ground.ports[number]))
    }

    pub(crate) fn folder(&self) -> &Path {
        self.ground.folder.path()
    }

    pub(crate) fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// A log by its file name; empty while there is none.
    pub(crate) fn log(&self, name: &str) -> String {
        fs::read(self.ground.path(name))
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// All logs, each under its name.
    pub(crate) fn logs(&self) -> String {
        let mut names: Vec<_> = fs::read_dir(self.folder())
            .unwrap()
            .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
            .filter(|name| name.ends_with(".log"))
            .collect();
        names.sort();
        names.iter().map(|name| format!("--- {name}\n{}", self.log(name))).collect()
    }

    /// Waits until a log says what it should, and gives it: programs write it after they answer.
    ///
    /// # Panics
    /// When it does not come.
    pub(crate) fn wait_for_log(&self, name: &str, wanted: impl Fn(&str) -> bool) -> String {
        let mut log = String::new();
        let came = eventually(|| {
            log = self.log(name);
            wanted(&log)
        });
        assert!(came, "{name} of {} does not say it:\n{}", self.name, self.logs());
        log
    }

    /// Empties a log, for a test that counts only what comes after.
    pub(crate) fn clear_log(&self, name: &str) {
        let mut file = File::options().write(true).open(self.ground.path(name)).unwrap();
        file.set_len(0).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        file.flush().unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let group = Pid::from_child(&self.child);
        let _ = kill_process_group(group, Signal::TERM);
        let child = &mut self.child;
        let ended = patiently(PATIENCE / 10, || matches!(child.try_wait(), Ok(Some(_)) | Err(_)));
        // Helpers and workers that outlived their parent, or a parent that does not listen.
        let _ = kill_process_group(group, Signal::KILL);
        if !ended {
            let _ = child.wait();
        }
    }
}

/// Asks again and again, at short intervals; `false` when it never becomes true.
pub(crate) fn eventually(done: impl FnMut() -> bool) -> bool {
    patiently(PATIENCE, done)
}

fn patiently(steps: usize, mut done: impl FnMut() -> bool) -> bool {
    let (_never, tick) = mpsc::channel::<()>();
    for _ in 0..steps {
        if done() {
            return true;
        }
        let _ = tick.recv_timeout(STEP);
    }
    done()
}
