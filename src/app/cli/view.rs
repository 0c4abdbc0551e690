//! `pactql view` and `pactql serve`: the page in a browser, and the HTTP interface behind it.

use super::command::{Invocation, RunCommand};
#[cfg(feature = "view")]
use super::input;
use crate::app::present::stores::{self, StoreAddress};
use crate::app::present::{Exit, Failure, Result};
use clap::Args;
use std::net::IpAddr;
use std::path::Path;

/// What did the models see, step by step? Opens a page in the browser, which follows what grows.
///
/// The page is served on this machine alone, and its address has a random token. It asks for nothing from
/// anywhere else. Ctrl-C ends it. `pactql share --html` writes the same page of one session as a file. With --timeout, an
/// answer may take this long [default: 30s].
#[derive(Args, Debug)]
pub(super) struct ViewArgs {
    /// Stores, files, folders of logs or `STORE#glob` [default: the logs of this machine's agents].
    #[arg(value_name = "WHERE")]
    places: Vec<String>,
    /// Print the address, and open no browser.
    #[arg(long)]
    no_open: bool,
    #[command(flatten)]
    listen: ListenArgs,
}

/// How do programs and browsers ask sessions? Serves the page of `view`, and answers over HTTP as JSON.
///
/// Without options only this machine is answered, and the token that is printed is needed. `--openapi` prints the
/// routes; each answer is that of a command with --json. With --timeout, an answer may take this long [default: 30s].
#[derive(Args, Debug)]
pub(super) struct ServeArgs {
    /// Stores, files or folders of logs [default: the logs of this machine's agents].
    #[arg(value_name = "STORE")]
    places: Vec<String>,
    /// Let clients write sessions of the stores: append, reply, commit, attempts.
    #[arg(long)]
    write: bool,
    /// Print the OpenAPI document of the interface, and serve nothing.
    #[arg(long, conflicts_with_all = ["write", "places"])]
    openapi: bool,
    #[command(flatten)]
    listen: ListenArgs,
}

#[derive(Args, Debug)]
struct ListenArgs {
    /// The port [default: a free one].
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    #[arg(hide_default_value = true)]
    port: u16,
    /// The address to listen on. One that other machines can reach needs --token-file. Connections are not encrypted:
    /// put a proxy with TLS before it.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    listen: IpAddr,
    /// The file with the token, of at least 16 characters, which no other user may read [default: a random token].
    #[arg(long, value_name = "FILE")]
    token_file: Option<String>,
    /// Another name, with its port, by which clients ask for the server, such as that of a proxy; may be given several times.
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// What is logged on standard error.
    #[arg(long, value_name = "LEVEL", default_value = "warn")]
    #[arg(value_parser = ["off", "warn", "info", "debug"])]
    log: String,
}

impl RunCommand for ViewArgs {
    fn answers_calls(&self) -> bool {
        true
    }

    fn run(&self, with: &Invocation) -> Result<Exit> {
        serve(&self.places, false, !self.no_open, &self.listen, with)
    }
}

impl RunCommand for ServeArgs {
    fn answers_calls(&self) -> bool {
        true
    }

    fn run(&self, with: &Invocation) -> Result<Exit> {
        #[cfg(feature = "view")]
        if self.openapi {
            return super::command::print(&(crate::app::serve::openapi() + "\n"));
        }
        let served = serve(&self.places, self.write, false, &self.listen, with);
        served.map_err(|failure| {
            let has_missing = self.places.iter().any(|word| missing_store(word).is_some());
            if failure.exit() == Exit::Missing && failure.help().is_none() && has_missing {
                return failure.with_help("with `--write`, a store that is missing is made");
            }
            failure
        })
    }
}

/// The path of a store, if nothing is there.
fn missing_store(word: &str) -> Option<&str> {
    let path = stores::path(StoreAddress::parse(word)?.store)?;
    (!Path::new(path).exists()).then_some(path)
}

/// The path that a word means, if nothing is there.
#[cfg(feature = "view")]
fn missing(word: &str) -> Option<&str> {
    let is_missing = |word: &&str| StoreAddress::parse(word).is_none() && !Path::new(word).exists();
    missing_store(word).or_else(|| Some(word).filter(is_missing))
}

#[cfg(feature = "view")]
fn serve(
    places: &[String],
    write: bool,
    open: bool,
    listen: &ListenArgs,
    with: &Invocation,
) -> Result<Exit> {
    use super::command::{print, say};
    use crate::app::serve;
    use std::time::Duration;
    use tracing_subscriber::filter::LevelFilter;

    let token = match &listen.token_file {
        Some(file) => serve::read_token(file)?,
        None if listen.listen.is_loopback() => serve::new_token()?,
        None => {
            let place = listen.listen;
            let message = format!("other machines reach {place}, so it needs `--token-file`");
            let help = "(umask 077; openssl rand -base64 32 > token), then --token-file token";
            return Err(Failure::usage(message).with_help(help));
        }
    };
    let level: Option<LevelFilter> = listen.log.parse().ok();
    let log = tracing_subscriber::fmt()
        .with_max_level(level.unwrap_or(LevelFilter::WARN))
        .with_ansi(false);
    // A process that has this program inside may have a log of its own.
    let _ = log.with_writer(std::io::stderr).try_init();
    let options = serve::ServeOptions {
        listen: std::net::SocketAddr::new(listen.listen, listen.port),
        token,
        hosts: listen.host.clone(),
        timeout: with.timeout.unwrap_or(Duration::from_secs(30)),
    };
    let words = places;
    let places = serve::Places::new(places, with.limits, write).map_err(|failure| {
        match words.iter().find_map(|word| missing(word)) {
            Some(path) => input::explain_missing(failure, path),
            None => failure,
        }
    })?;
    for folder in places.without_sessions()? {
        let folder = folder.display();
        say(&format!(
            "note: there are no logs and no sessions in {folder} yet\n"
        ));
    }
    serve::serve(places, &options, super::interrupt::leave(), |url| {
        let line = if with.is_json() {
            serde_json::json!({ "url": url }).to_string()
        } else {
            url.to_owned()
        };
        print(&(line + "\n"))?;
        if open && !is_opened(url) {
            say("note: no browser was opened; open the address above\n");
        }
        Ok(())
    })?;
    Ok(Exit::Ok)
}

/// Opens an address with the program that the system has for it.
#[cfg(feature = "view")]
fn is_opened(url: &str) -> bool {
    use std::process::{Command, Stdio};
    let (program, first) = if cfg!(target_os = "macos") {
        ("open", None)
    } else if cfg!(windows) {
        ("rundll32", Some("url.dll,FileProtocolHandler"))
    } else {
        ("xdg-open", None)
    };
    let mut command = Command::new(program);
    command.args(first).arg(url);
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null());
    let quiet = quiet.stderr(Stdio::null());
    let Ok(mut child) = quiet.spawn() else {
        return false;
    };
    // A browser may run as long as this program.
    let _ = std::thread::Builder::new().spawn(move || child.wait());
    true
}

#[cfg(not(feature = "view"))]
fn serve(_: &[String], _: bool, _: bool, _: &ListenArgs, _: &Invocation) -> Result<Exit> {
    let message = "this build has no page: install with `--features view`";
    Err(Failure::usage(message))
}
