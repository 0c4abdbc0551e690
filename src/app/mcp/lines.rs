//! Standard input and output as lines, the end of either, and messages on standard error.
//!
//! Each stream has a thread of its own, so that a client that does not write or does not read delays nothing else.
//! A third thread waits for the other side to close a stream: the end is noticed while nothing is read or written.

use super::load::Load;
use std::io::{self, BufRead, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};

/// The longest line that is read whole, in bytes.
pub(super) const LONGEST: usize = 16 << 20;

/// How long calls may run after the end of the input.
const GRACE: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub(super) struct ReceivedLine {
    pub(super) bytes: Vec<u8>,
    /// Whether the line was longer; the rest was dropped.
    pub(super) cut: bool,
}

/// The lines of standard input. Nothing is lost if a wait for one is given up.
pub(super) type Input = mpsc::Receiver<ReceivedLine>;

#[derive(Debug)]
pub(super) struct LineOutput {
    lines: Sender<Unwritten>,
    load: Load,
}

/// A line to be written; `written` hears of it afterwards.
struct Unwritten {
    bytes: Vec<u8>,
    written: oneshot::Sender<()>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Ended {
    None,
    Input,
    Output,
}

#[derive(Debug)]
pub(super) struct End(watch::Receiver<Ended>);

/// Starts the threads.
pub(super) fn open(load: Load) -> io::Result<(Input, LineOutput, End)> {
    let (ended, end) = watch::channel(Ended::None);
    let ended = Arc::new(ended);
    // One line is parsed while the next is read; a full channel is the back-pressure.
    let (sender, input) = mpsc::channel(1);
    let of_input = Arc::clone(&ended);
    start("input", move || {
        read(&mut io::stdin().lock(), &sender);
        raise(&of_input, Ended::Input);
    })?;
    let (lines, unwritten) = channel();
    let of_output = Arc::clone(&ended);
    let of_lines = load.clone();
    start("output", move || {
        write(&unwritten, &of_lines);
        raise(&of_output, Ended::Output);
    })?;
    #[cfg(unix)]
    start("end", move || watch_streams(&ended))?;
    Ok((input, LineOutput { lines, load }, End(end)))
}

/// How many messages may wait to be written on standard error; further ones are dropped.
const WAITING: usize = 64;

/// Writes messages, each of which ends in a line feed, on standard error from a thread of its own: a client that does
/// not read them never delays a response. The receiver hangs up after the last one, once the sender is dropped.
pub(super) fn log() -> (SyncSender<String>, Receiver<()>) {
    let (log, messages) = sync_channel::<String>(WAITING);
    let (ended, rest) = channel();
    // Without the thread there is nowhere to report that, nor a failure to write.
    let _ = start("log", move || {
        for message in messages {
            let _ = io::stderr().write_all(message.as_bytes());
        }
        drop(ended);
    });
    (log, rest)
}

fn start(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread.spawn(run).map(drop)
}

fn raise(ended: &watch::Sender<Ended>, which: Ended) {
    ended.send_modify(|now| *now = which.max(*now));
}

/// Reads lines until the input ends or they are not wanted.
fn read(input: &mut impl BufRead, sender: &mpsc::Sender<ReceivedLine>) {
    while let Ok(Some(line)) = next(input) {
        if sender.blocking_send(line).is_err() {
            return;
        }
    }
}

fn next(input: &mut impl BufRead) -> io::Result<Option<ReceivedLine>> {
    let mut bytes = Vec::new();
    let most = LONGEST as u64 + 1;
    if input.take(most).read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    let whole = bytes.pop_if(|last| *last == b'\n').is_some();
    let cut = bytes.len() > LONGEST;
    bytes.truncate(LONGEST);
    if cut && !whole {
        input.skip_until(b'\n')?;
    }
    Ok(Some(ReceivedLine { bytes, cut }))
}

fn write(unwritten: &Receiver<Unwritten>, load: &Load) {
    for line in unwritten {
        let mut output = io::stdout().lock();
        let done = output.write_all(&line.bytes).and_then(|()| output.flush());
        load.went(|now| &mut now.lines, line.bytes.len());
        if done.is_err() {
            return;
        }
        // The call may be forgotten.
        let _ = line.written.send(());
    }
}

/// Waits for the other sides to close the streams. A file is never closed so.
#[cfg(unix)]
fn watch_streams(ended: &watch::Sender<Ended>) {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::io::Errno;
    /// Reported without being asked for.
    const GONE: PollFlags = PollFlags::HUP.union(PollFlags::ERR).union(PollFlags::NVAL);
    #[cfg(target_os = "linux")]
    const NO_MORE: PollFlags = PollFlags::RDHUP;
    #[cfg(not(target_os = "linux"))]
    const NO_MORE: PollFlags = PollFlags::empty();
    let (input, output) = (io::stdin(), io::stdout());
    let mut both = [
        PollFd::new(&output, PollFlags::empty()),
        PollFd::new(&input, NO_MORE),
    ];
    let mut open = both.as_mut_slice();
    loop {
        match poll(open, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return,
        }
        let gone = |stream: Option<&PollFd<'_>>| {
            stream.is_some_and(|stream| stream.revents().intersects(GONE.union(NO_MORE)))
        };
        if gone(open.first()) {
            return raise(ended, Ended::Output);
        }
        if gone(open.get(1)) {
            raise(ended, Ended::Input);
            open = match open {
                [output, ..] => std::slice::from_mut(output),
                [] => return,
            };
        }
    }
}

impl LineOutput {
    /// Puts a line behind those that wait. The future ends when it was written.
    pub(super) fn send(
        &self,
        bytes: Vec<u8>,
    ) -> impl Future<Output = io::Result<()>> + Send + use<> {
        let (written, done) = oneshot::channel();
        let length = bytes.len();
        self.load.came(|now| &mut now.lines, length);
        let sent = self.lines.send(Unwritten { bytes, written });
        if sent.is_err() {
            self.load.went(|now| &mut now.lines, length);
        }
        async move {
            done.await
                .map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
        }
    }
}

impl End {
    /// Waits until the conversation must be over: some time after the end of the input, at once after that of
    /// the output, because there is no reader any more.
    pub(super) async fn over(mut self) {
        if self.0.wait_for(|ended| *ended != Ended::None).await.is_ok() {
            let output = self.0.wait_for(|ended| *ended == Ended::Output);
            let _ = tokio::time::timeout(GRACE, output).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, next};
    use std::io::BufReader;

    #[test]
    fn lines_end_in_a_line_feed_or_with_the_input() {
        let long = "x".repeat(LONGEST);
        let text = format!("one\n\n{long}\n{long}y\n{long}{long}\nlast");
        let mut input = BufReader::new(text.as_bytes());
        let mut lines = Vec::new();
        while let Some(line) = next(&mut input).expect("no failure") {
            lines.push((line.bytes.len(), line.cut));
        }
        let cut = (LONGEST, true);
        let expected = [
            (3, false),
            (0, false),
            (LONGEST, false),
            cut,
            cut,
            (4, false),
        ];
        assert_eq!(lines, expected);
    }
}
