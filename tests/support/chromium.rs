//! A headless Chromium that is driven over pipes, with what it does in a page: requests, messages, errors.
//!
//! The protocol is DevTools' over `--remote-debugging-pipe`: JSON messages that end in a NUL, read from file
//! 3 and written to file 4, which a shell opens on our pipes. Without a browser a test prints `SKIPPED:
//! reason`.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long an answer may take, before the test is given up.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running browser with one tab. Dropping it ends it and removes its files.
pub(crate) struct Chromium {
    child: Child,
    to: Option<ChildStdin>,
    from: Receiver<Value>,
    session: String,
    number: u64,
    directory: PathBuf,
    /// Events that came so far.
    events: Vec<Value>,
}

impl Chromium {
    /// Starts the browser, or says why it cannot.
    pub(crate) fn start() -> Result<Self, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let program = program().ok_or("there is no chromium in PATH")?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("pactql-chromium-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let script = "exec \"$0\" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
            --no-first-run --disable-component-update --disable-background-networking --disable-sync \
            --window-size=1400,900 --user-data-dir=\"$1\" --remote-debugging-pipe about:blank \
            3<&0 4>&1 < /dev/null > /dev/null 2>&1";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .arg(&program)
            .arg(&directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let to = child.stdin.take();
        let out = child.stdout.take().ok_or("no pipe")?;
        let (sender, from) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(out).split(0).map_while(Result::ok) {
                let Ok(message) = serde_json::from_slice(&message) else {
                    return;
                };
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut browser = Self {
            child,
            to,
            from,
            session: String::new(),
            number: 0,
            directory,
            events: Vec::new(),
        };
        browser.attach()?;
        Ok(browser)
    }

    fn attach(&mut self) -> Result<(), String> {
        let made = self.ask("Target.createTarget", json!({"url": "about:blank"}))?;
        let target = json!({"targetId": made["targetId"], "flatten": true});
        let attached = self.ask("Target.attachToTarget", target)?;
        let session = attached["sessionId"].as_str();
        self.session = session.ok_or("no session")?.to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.ask(&format!("{domain}.enable"), json!({}))?;
        }
        Ok(())
    }

    /// Sends a command, and waits for its answer.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Result<Value, String> {
        self.number += 1;
        let number = self.number;
        let mut message = json!({"id": number, "method": method, "params": params});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let mut text = message.to_string();
        text.push('\0');
        let to = self.to.as_mut().ok_or("the browser has ended")?;
        to.write_all(text.as_bytes())
            .and_then(|()| to.flush())
            .map_err(|error| format!("{method}: {error}"))?;
        loop {
            let message = self.next(method)?;
            if message["id"] == number {
                return match message.get("error") {
                    Some(error) => Err(format!("{method}: {error}")),
                    None => Ok(message["result"].clone()),
                };
            }
            self.events.push(message);
        }
    }

    fn next(&mut self, wanted: &str) -> Result<Value, String> {
        let message = self.from.recv_timeout(PATIENCE);
        message.map_err(|error| format!("waiting for {wanted}: {error}"))
    }

    /// Opens a page and waits until it is loaded.
    pub(crate) fn open(&mut self, url: &str) -> Result<(), String> {
        self.events.clear();
        self.ask("Page.navigate", json!({"url": url}))?;
        while !self
            .events
            .iter()
            .any(|event| event["method"] == "Page.loadEventFired")
        {
            let event = self.next("the page")?;
            self.events.push(event);
        }
        Ok(())
    }

    /// The value of an expression in the page.
    pub(crate) fn value(&mut self, expression: &str) -> Result<Value, String> {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.ask("Runtime.evaluate", params)?;
        match answer.get("exceptionDetails") {
            Some(details) => Err(format!("{expression}: {details}")),
            None => Ok(answer["result"]["value"].clone()),
        }
    }

    /// Presses a key: a letter, or a name such as `ArrowDown`.
    pub(crate) fn press(&mut self, key: &str) -> Result<(), String> {
        let mut down = json!({"type": "keyDown", "key": key});
        match key {
            "Enter" => down["text"] = json!("\r"),
            key if key.chars().count() == 1 => down["text"] = json!(key),
            _ => {}
        }
        // Tab and Enter do what they do by their number alone.
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            _ => 0,
        };
        if code > 0 {
            down["windowsVirtualKeyCode"] = json!(code);
        }
        self.ask("Input.dispatchKeyEvent", down)?;
        self.ask(
            "Input.dispatchKeyEvent",
            json!({"type": "keyUp", "key": key}),
        )?;
        Ok(())
    }

    /// Types a text.
    pub(crate) fn type_text(&mut self, text: &str) -> Result<(), String> {
        self.ask("Input.insertText", json!({"text": text}))
            .map(|_| ())
    }

    /// The addresses that were asked for since the page was opened, its own included.
    pub(crate) fn requests(&self) -> Vec<String> {
        let events = self.events.iter();
        let requests = events.filter(|event| event["method"] == "Network.requestWillBeSent");
        let addresses = requests.map(|event| event["params"]["request"]["url"].as_str());
        addresses.flatten().map(str::to_owned).collect()
    }

    /// What the page wrote to the console, errors that nothing caught, and complaints of the browser.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let is_complaint = |event: &&Value| {
            let method = event["method"].as_str().unwrap_or_default();
            [
                "Runtime.consoleAPICalled",
                "Runtime.exceptionThrown",
                "Log.entryAdded",
                "Page.javascriptDialogOpening",
            ]
            .contains(&method)
        };
        self.events
            .iter()
            .filter(is_complaint)
            .map(Value::to_string)
            .collect()
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.session.split_off(0);
        let _ = self.ask("Browser.close", json!({}));
        self.to = None;
        for _ in 0..100 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// The address of a file.
pub(crate) fn address(path: &Path) -> String {
    format!("file://{}", path.display())
}

/// The browser's program: `PACTQL_CHROMIUM`, or the first of the usual names in `PATH`.
fn program() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("PACTQL_CHROMIUM") {
        return Some(named.into());
    }
    let paths = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let mut found =
        std::env::split_paths(&paths).flat_map(|path| names.map(|name| path.join(name)));
    found.find(|path| path.is_file())
}
