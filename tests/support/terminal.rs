//! A terminal that a command writes to, and what somebody sees on it.

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::thread::{self, JoinHandle};

/// More rows than are ever needed, so that nothing is scrolled away.
const ROWS: u16 = 4000;

/// A terminal, and what has been written to it.
pub(crate) struct Terminal {
    name: String,
    master: OwnedFd,
    reading: JoinHandle<Vec<u8>>,
}

impl Terminal {
    pub(crate) fn new(columns: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let mut reader = File::from(master.try_clone().unwrap());
        // Reading fails once nobody holds the other end any more.
        let reading = thread::spawn(move || {
            let (mut all, mut piece) = (Vec::new(), [0; 65536]);
            while let Ok(length @ 1..) = reader.read(&mut piece) {
                all.extend_from_slice(&piece[..length]);
            }
            all
        });
        let terminal = Self { name, master, reading };
        terminal.resize(columns);
        terminal
    }

    pub(crate) fn resize(&self, columns: u16) {
        let size = Winsize { ws_row: ROWS, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.master, size).unwrap();
    }

    pub(crate) fn open(&self) -> File {
        File::options().read(true).write(true).open(&self.name).unwrap()
    }

    pub(crate) fn bytes(self) -> Vec<u8> {
        self.reading.join().unwrap()
    }
}

/// What a terminal of so many columns shows of these bytes.
pub(crate) fn shown(bytes: &[u8], columns: u16) -> String {
    let mut parser = vt100::Parser::new(ROWS, columns, 0);
    parser.process(bytes);
    parser.screen().contents()
}
