//! Chromium without a window: a page as a browser shows it, and what the browser has to say of it.
//!
//! It is driven over its own protocol, through two pipes: no port is opened, and nothing has to be
//! installed beside it.

use super::require;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// How long an answer may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running browser with one page; ends when dropped.
pub(crate) struct Chromium {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    calls: u64,
    session: Option<String>,
    events: Vec<Value>,
    folder: TempDir,
}

impl Chromium {
    /// `None` where it is not installed, as with the other programs.
    pub(crate) fn start() -> Option<Self> {
        let program = require("chromium")?;
        let folder = tempfile::Builder::new().prefix("longhaul-").tempdir().unwrap();
        let log = File::create(folder.path().join("output.log")).unwrap();
        // It reads from descriptor 3 and writes to descriptor 4, which only a shell can set.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1"])
            .arg(program)
            .args(["--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu"])
            .args(["--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking"])
            .args(["--disable-component-update", "--disable-sync", "--force-color-profile=srgb"])
            // Nothing is looked up, wherever a page would lead.
            .args(["--host-resolver-rules=MAP * ~NOTFOUND", "--hide-scrollbars"])
            .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
            .arg("about:blank")
            .env("HOME", folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .process_group(0)
            .spawn()
            .unwrap();
        let to = child.stdin.take().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let (heard, from) = mpsc::channel();
        thread::spawn(move || {
            let mut message = Vec::new();
            while out.read_until(0, &mut message).is_ok_and(|length| length > 0) {
                let text = message.strip_suffix(&[0]).unwrap_or(&message);
                if let Ok(value) = serde_json::from_slice(text) {
                    let _ = heard.send(value);
                }
                message.clear();
            }
        });
        let (calls, session, events) = (0, None, Vec::new());
        let mut browser = Self { child, to, from, calls, session, events, folder };
        let target = browser.call("Target.createTarget", &json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = browser.call("Target.attachToTarget", &attach);
        browser.session = Some(attached["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Log", "Network", "Accessibility"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        Some(browser)
    }

    /// Asks for something, and gives what is answered.
    pub(crate) fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.calls += 1;
        let mut message = json!({"id": self.calls, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        self.to.flush().unwrap();
        loop {
            let heard = self.hear();
            if heard["id"] == self.calls {
                assert!(heard["error"].is_null(), "{method}: {heard}");
                return heard["result"].clone();
            }
            self.events.push(heard);
        }
    }

    fn hear(&mut self) -> Value {
        self.from.recv_timeout(PATIENCE).unwrap_or_else(|error| {
            let log = fs::read_to_string(self.folder.path().join("output.log"));
            panic!("chromium says nothing: {error}\n{}", log.unwrap_or_default())
        })
    }

    /// The screen that pages are shown on from now on.
    pub(crate) fn screen(&mut self, width: u32, dark: bool) {
        let scheme = if dark { "dark" } else { "light" };
        self.call(
            "Emulation.setDeviceMetricsOverride",
            &json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}),
        );
        self.call(
            "Emulation.setEmulatedMedia",
            &json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]}),
        );
    }

    /// Whether scripts of pages run from now on.
    pub(crate) fn scripts(&mut self, run: bool) {
        self.call("Emulation.setScriptExecutionDisabled", &json!({"value": !run}));
    }

    /// Shows a file, until it is loaded.
    pub(crate) fn open(&mut self, file: &Path) {
        self.events.clear();
        self.call("Page.navigate", &json!({"url": format!("file://{}", file.display())}));
        let is_loaded = |event: &Value| event["method"] == "Page.loadEventFired";
        while !self.events.iter().any(is_loaded) {
            let heard = self.hear();
            self.events.push(heard);
        }
    }

    /// The value of an expression on the page; asked from outside, so also where scripts are off.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", &asked);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// All that the browser complained of since the page was opened.
    pub(crate) fn complaints(&self) -> Vec<&Value> {
        let said = ["Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"]
            .map(Value::from);
        self.events.iter().filter(|event| said.contains(&event["method"])).collect()
    }

    /// The URLs that were asked for since the page was opened.
    pub(crate) fn requests(&self) -> Vec<&str> {
        let sent =
            self.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        sent.map(|event| event["params"]["request"]["url"].as_str().unwrap()).collect()
    }

    /// The page as a screen reader meets it: role, name and description of each node.
    pub(crate) fn nodes(&mut self) -> Vec<(String, String, String)> {
        let tree = self.call("Accessibility.getFullAXTree", &json!({}));
        let nodes = tree["nodes"].as_array().unwrap().iter();
        nodes
            .filter(|node| node["ignored"] != true)
            .map(|node| {
                let text = |name: &str| node[name]["value"].as_str().unwrap_or_default().to_owned();
                (text("role"), text("name"), text("description"))
            })
            .collect()
    }

    /// The whole page as PNG, in base64.
    pub(crate) fn picture(&mut self, width: u32, height: u32) -> String {
        let clip = json!({"x": 0, "y": 0, "width": width, "height": height, "scale": 1});
        let asked = json!({"format": "png", "captureBeyondViewport": true, "clip": clip});
        self.call("Page.captureScreenshot", &asked)["data"].as_str().unwrap().to_owned()
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // Its own processes have its group.
        if let Some(group) = Pid::from_raw(self.child.id() as i32) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}
