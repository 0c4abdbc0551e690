//! A PostgreSQL server of its own for a test: own data directory, Unix socket only.
//!
//! Debian's `postgresql` brings the programs. They refuse to run as root, so then they run as the user
//! `postgres`. A shell that reads from this process looks after the server: however this process ends, the
//! shell ends the server and removes its files.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A running server. Dropping it stops it and removes its files.
pub struct Server {
    directory: PathBuf,
    programs: PathBuf,
    keeper: Option<(Child, ChildStdin)>,
}

/// Runs the server until a line comes, then as long as there are lines: `crash` and `stop` end it, each
/// next `start` starts it. Says `ready` or `ended` on its output. At the end of the lines it cleans up.
const KEEPER: &str = r#"
programs=$1 directory=$2
start() {
    "$programs/postgres" -D "$directory/data" -k "$directory" -h '' >> "$directory/log" 2>&1 &
    server=$!
    for _ in $(seq 600); do
        if "$programs/pg_isready" -q -h "$directory"; then echo ready; return; fi
        kill -0 "$server" 2> /dev/null || break
        sleep 0.05
    done
    echo failed
}
end() { kill "-$1" "$server" 2> /dev/null; wait "$server" 2> /dev/null; }
start
while read -r line; do
    case $line in
        start) start ;;
        crash) end QUIT; echo ended ;;
        stop) end INT; echo ended ;;
    esac
done
end QUIT
rm -rf "$directory"
"#;

impl Server {
    /// Starts a server on new data, or says why there is none: then the test prints `SKIPPED: reason`.
    pub fn start() -> Result<Self, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let programs = programs().ok_or("PostgreSQL's initdb is not in /usr/lib/postgresql")?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // A socket's path may have 107 bytes, which a longer directory for temporary files could use up.
        let name = format!("/tmp/pactql-pg-{}-{number}", std::process::id());
        let directory = PathBuf::from(name);
        let io = |error: std::io::Error| format!("{}: {error}", directory.display());
        let _ = std::fs::remove_dir_all(&directory);
        let mut made = run_as(&["mkdir", "-m", "700"]).ok_or("there is no user `postgres`")?;
        let made = made.arg(&directory).status().map_err(io)?;
        if !made.success() {
            return Err(format!("{} cannot be made", directory.display()));
        }
        let mut server = Self {
            directory,
            programs,
            keeper: None,
        };
        server.run()?;
        Ok(server)
    }

    fn run(&mut self) -> Result<(), String> {
        let io = |error: std::io::Error| format!("{}: {error}", self.directory.display());
        let initdb = self.programs.join("initdb");
        let command = run_as(&["env", "-i", "LC_ALL=C"]);
        let made = command
            .ok_or("there is no user `postgres`")?
            .arg(initdb)
            .args(["-U", "postgres", "-E", "UTF8", "--locale=C"])
            .args(["-A", "trust", "--no-sync", "-D"])
            .arg(self.directory.join("data"))
            .current_dir("/")
            .output()
            .map_err(io)?;
        if !made.status.success() {
            let told = String::from_utf8_lossy(&made.stderr).into_owned();
            return Err(format!("initdb failed: {told}"));
        }
        let command = run_as(&["sh", "-c", KEEPER, "keeper"]);
        let mut keeper = command
            .ok_or("there is no user `postgres`")?
            .args([&self.programs, &self.directory])
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(io)?;
        let lines = keeper.stdin.take().ok_or("the shell reads nothing")?;
        self.keeper = Some((keeper, lines));
        self.wait_for("ready")
    }

    /// The address of its database `postgres`, for [`pactql::Store`] with a schema of this name.
    pub fn url(&self, schema: &str) -> String {
        let host = self.directory.display();
        format!("postgres:///postgres?host={host}&user=postgres&schema={schema}")
    }

    /// Ends it as a crash does: without a word to those connected, and without a checkpoint.
    pub fn kill(&mut self) {
        self.tell("crash", "ended");
    }

    /// Ends it after it has told those connected.
    pub fn stop(&mut self) {
        self.tell("stop", "ended");
    }

    /// Starts it after [`Server::kill`] or [`Server::stop`].
    pub fn resume(&mut self) {
        self.tell("start", "ready");
    }

    /// [`Server::kill`], then [`Server::resume`].
    pub fn restart(&mut self) {
        self.kill();
        self.resume();
    }

    fn tell(&mut self, line: &str, answer: &str) {
        if let Some((_, lines)) = &mut self.keeper {
            writeln!(lines, "{line}").unwrap();
        }
        self.wait_for(answer).unwrap();
    }

    fn wait_for(&mut self, expected: &str) -> Result<(), String> {
        let output = self
            .keeper
            .as_mut()
            .and_then(|(keeper, _)| keeper.stdout.as_mut());
        let mut line = String::new();
        // The shell writes one line at a time, so nothing after it is read ahead and lost.
        let mut output = BufReader::new(output.ok_or("the server is not running")?);
        output
            .read_line(&mut line)
            .map_err(|error| error.to_string())?;
        if line.trim() == expected {
            return Ok(());
        }
        let log = std::fs::read_to_string(self.directory.join("log")).unwrap_or_default();
        Err(format!("the server did not start: {log}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        match self.keeper.take() {
            Some((mut keeper, lines)) => {
                drop(lines);
                let _ = keeper.wait();
            }
            None => {
                let _ = std::fs::remove_dir_all(&self.directory);
            }
        }
    }
}

/// The directory of the newest version that is installed.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let number = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let versions = versions.flatten().map(|version| version.path());
    let newest = versions
        .filter(|path| path.join("bin/initdb").exists())
        .max_by_key(|path| number(path))?;
    Some(newest.join("bin"))
}

/// A command that runs as this user or, if that is root, as `postgres`.
fn run_as(words: &[&str]) -> Option<Command> {
    let id = |arguments: &[&str]| {
        let told = Command::new("id").args(arguments).output().ok()?;
        let told = String::from_utf8(told.stdout).ok()?;
        told.trim().parse::<u32>().ok()
    };
    if id(&["-u"])? != 0 {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        return Some(command);
    }
    let (user, group) = (id(&["-u", "postgres"])?, id(&["-g", "postgres"])?);
    let mut command = Command::new("setpriv");
    command
        .arg(format!("--reuid={user}"))
        .arg(format!("--regid={group}"))
        .arg("--clear-groups")
        .args(words);
    Some(command)
}
