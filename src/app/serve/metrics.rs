//! Counts and times of requests, in the text form of Prometheus.

use crate::support::lock;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// The upper ends of the classes of times, in seconds.
const ENDS: [f64; 8] = [0.005, 0.02, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0];

#[derive(Debug, Default)]
pub(super) struct Metrics {
    /// By route and status.
    requests: Mutex<BTreeMap<(String, u16), RequestTimes>>,
    pub(super) connections: Gauge,
    pub(super) running: Gauge,
    pub(super) waiting: Gauge,
}

#[derive(Debug, Default)]
struct RequestTimes {
    count: u64,
    seconds: f64,
    /// How many took at most as long as each end.
    within: [u64; ENDS.len()],
}

#[derive(Debug, Default)]
pub(super) struct Gauge(AtomicI64);

/// Counts as one more until it is dropped.
pub(super) struct GaugeGuard<'a>(&'a Gauge);

impl Gauge {
    pub(super) fn enter(&self) -> GaugeGuard<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        GaugeGuard(self)
    }

    pub(super) fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for GaugeGuard<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    pub(super) fn answered(&self, route: &str, status: u16, took: Duration) {
        let mut all = lock(&self.requests);
        let times = all.entry((route.to_owned(), status)).or_default();
        let seconds = took.as_secs_f64();
        times.count += 1;
        times.seconds += seconds;
        for (within, end) in times.within.iter_mut().zip(ENDS) {
            *within += u64::from(seconds <= end);
        }
    }

    /// All figures, with those of others: a name without `pactql_`, what it is, its kind, and its value.
    pub(super) fn text(&self, streams: usize, others: &[(&str, &str, &str, u64)]) -> String {
        let mut out = String::new();
        let name = "pactql_http_request_seconds";
        let _ = writeln!(
            out,
            "# HELP {name} Time until a request was answered.\n# TYPE {name} histogram"
        );
        let all = lock(&self.requests);
        for ((route, status), times) in &*all {
            let labels = format!("route=\"{route}\",status=\"{status}\"");
            for (within, end) in times.within.iter().zip(ENDS) {
                let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{end}\"}} {within}");
            }
            let RequestTimes { count, seconds, .. } = times;
            let _ = writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {count}");
            let _ = writeln!(
                out,
                "{name}_sum{{{labels}}} {seconds}\n{name}_count{{{labels}}} {count}"
            );
        }
        for (name, about, gauge) in [
            ("connections", "Open connections.", self.connections.get()),
            (
                "requests_running",
                "Requests that are being answered.",
                self.running.get(),
            ),
            (
                "requests_waiting",
                "Requests that wait for a processor.",
                self.waiting.get(),
            ),
            ("event_streams", "Clients that get events.", streams as i64),
        ] {
            let name = format!("pactql_http_{name}");
            let _ = writeln!(
                out,
                "# HELP {name} {about}\n# TYPE {name} gauge\n{name} {gauge}"
            );
        }
        for (name, about, kind, value) in others {
            let name = format!("pactql_{name}");
            let _ = writeln!(
                out,
                "# HELP {name} {about}\n# TYPE {name} {kind}\n{name} {value}"
            );
        }
        out
    }
}
