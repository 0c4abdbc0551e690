//! The port, connections and their limits, and the end.

use super::app::App;
use super::events;
use super::guard::Guard;
use super::places::Places;
use super::routes::router;
use crate::app::present::{Exit, Failure, Result};
use crate::support::lock;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, Sleep, sleep_until};

/// What a server is to be.
#[derive(Clone, Debug)]
pub(crate) struct ServeOptions {
    pub(crate) listen: SocketAddr,
    pub(crate) token: String,
    /// Names by which clients ask for it, besides its address.
    pub(crate) hosts: Vec<String>,
    /// How long an answer may take.
    pub(crate) timeout: Duration,
}

/// The most open connections. One more takes the place of the oldest on which no request has come yet, or waits.
const CONNECTIONS: usize = 1024;

/// The files that a server needs open besides its connections, such as those of stores and logs.
const FILES: u64 = 512;

/// How long a client may take to send the header of a request, also the next one.
const HEADER_TIME: Duration = Duration::from_secs(10);

/// How long a client may not read what it is sent.
const WRITE_TIME: Duration = Duration::from_secs(30);

/// How long requests have to be answered when the server ends.
const GRACE: Duration = Duration::from_secs(5);

const HEADER_BYTES: usize = 64 << 10;

/// The time between two looks at whether to end.
const TICK: Duration = Duration::from_millis(50);

/// Serves until `stop` is set. `started` gets the address with the token when the port is open.
///
/// # Errors
/// The port cannot be opened; those of `started`.
pub(crate) fn serve(
    places: Places,
    options: &ServeOptions,
    stop: &AtomicBool,
    started: impl FnOnce(&str) -> Result<()>,
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .map_err(|error| Failure::internal(error.to_string()))?;
    let outcome = runtime.block_on(async {
        let failed = |error| Failure::plain(Exit::Io, format!("{}: {error}", options.listen));
        let listener = bind(options.listen).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let hosts = hosts(address, &options.hosts);
        let shown = hosts.first().cloned().unwrap_or_default();
        let guard = Guard::new(&options.token, address.port(), hosts);
        let app = Arc::new(App::new(places, guard, options.timeout));
        started(&format!("http://{shown}/?token={}", options.token))?;
        accept(&listener, &app, stop).await;
        Ok(())
    });
    // No caller waits for answers that are still being made.
    runtime.shutdown_background();
    outcome
}

/// A port with as long a queue as there may be connections: past its end, a client waits a second before it tries again.
fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // As `TcpListener::bind` does: a server that starts again gets its port at once.
    #[cfg(not(windows))]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(CONNECTIONS as u32)
}

/// What a `Host` may be.
fn hosts(address: SocketAddr, names: &[String]) -> Vec<String> {
    let port = address.port();
    let mut hosts = vec![address.to_string()];
    if address.ip().is_loopback() {
        let own = ["127.0.0.1", "localhost", "[::1]"];
        hosts.extend(own.map(|name| format!("{name}:{port}")));
    }
    if port == 80 {
        hosts.push(match address.ip() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        });
    }
    hosts.extend(names.iter().cloned());
    hosts
}

/// How many connections may be open, of the files that this process may have open.
fn most_connections() -> usize {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let wanted = CONNECTIONS as u64 + FILES;
        let limit = getrlimit(Resource::Nofile);
        let most = limit.maximum.unwrap_or(u64::MAX).min(wanted);
        let mut now = limit.current.unwrap_or(u64::MAX);
        if now < most {
            let raised = Rlimit {
                current: Some(most),
                maximum: limit.maximum,
            };
            if setrlimit(Resource::Nofile, raised).is_ok() {
                now = most;
            }
        }
        let files = usize::try_from(now.min(wanted)).unwrap_or(CONNECTIONS);
        (files * 2 / 3).clamp(1, CONNECTIONS)
    }
    #[cfg(not(target_os = "linux"))]
    CONNECTIONS
}

/// The connections on which no request has come yet, by their numbers, which grow.
#[derive(Debug, Default)]
struct Unasked(Mutex<BTreeMap<u64, Arc<Notify>>>);

impl Unasked {
    fn all(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Notify>>> {
        lock(&self.0)
    }

    /// Adds one. What is returned says when it is to be closed.
    fn add(&self, number: u64) -> Arc<Notify> {
        let close = Arc::new(Notify::new());
        self.all().insert(number, Arc::clone(&close));
        close
    }

    fn remove(&self, number: u64) {
        self.all().remove(&number);
    }

    fn close_oldest(&self) {
        if let Some((_, close)) = self.all().pop_first() {
            close.notify_one();
        }
    }
}

async fn accept(listener: &TcpListener, app: &Arc<App>, stop: &AtomicBool) {
    let permits = Arc::new(Semaphore::new(most_connections()));
    let (unasked, mut number) = (Arc::new(Unasked::default()), 0);
    let graceful = GracefulShutdown::new();
    let mut server = http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .max_header_size(HEADER_BYTES);
    let service = TowerToHyperService::new(router(Arc::clone(app)));
    let watcher = events::watch(app);
    let mut stopped = pin!(async {
        while !stop.load(Ordering::Relaxed) {
            tokio::time::sleep(TICK).await;
        }
    });
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stopped => break,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Such as too many open files: others may be closed soon.
                tracing::warn!(%error, "a connection was not accepted");
                tokio::time::sleep(TICK).await;
                continue;
            }
        };
        if permits.available_permits() == 0 {
            unasked.close_oldest();
        }
        let permit = tokio::select! {
            biased;
            () = &mut stopped => break,
            permit = Arc::clone(&permits).acquire_owned() => permit,
        };
        number += 1;
        let close = unasked.add(number);
        let answering = {
            let (service, unasked) = (service.clone(), Arc::clone(&unasked));
            service_fn(move |request| {
                unasked.remove(number);
                service.call(request)
            })
        };
        let io = TokioIo::new(TimedStream::new(stream));
        let connection = graceful.watch(server.serve_connection(io, answering));
        let (app, unasked) = (Arc::clone(app), Arc::clone(&unasked));
        tokio::spawn(async move {
            let _open = app.metrics.connections.enter();
            tokio::select! {
                ended = connection => if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended");
                },
                () = close.notified() => tracing::debug!("a connection made room for another"),
            }
            unasked.remove(number);
            drop(permit);
        });
    }
    // Streams of events end, and requests are answered.
    drop(watcher);
    app.hub.end();
    tracing::info!("ending");
    let _ = tokio::time::timeout(GRACE, graceful.shutdown()).await;
}

/// A connection that is closed when its client does not read.
struct TimedStream {
    stream: TcpStream,
    /// When a write that waits has waited too long.
    late: Option<Pin<Box<Sleep>>>,
}

impl TimedStream {
    fn new(stream: TcpStream) -> Self {
        // An answer is written whole, so waiting for more only costs time.
        let _ = stream.set_nodelay(true);
        Self { stream, late: None }
    }

    fn timed<T>(
        &mut self,
        context: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.late = None;
            return polled;
        }
        let late = self
            .late
            .get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + WRITE_TIME)));
        match late.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for TimedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for TimedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.timed(context, polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        self.timed(context, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(context);
        self.timed(context, polled)
    }
}
