//! Metrics as text for Prometheus and what reads its formats.

use std::fmt::Write as _;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use tectum_control::live::{Live, QuantityKind};

use super::Desk;
use std::sync::atomic::Ordering;

/// The type of the older text format.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";
/// The type of OpenMetrics.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The metrics of a run, as OpenMetrics for those who accept it.
pub(super) async fn metrics(State(desk): State<Desk>, headers: HeaderMap) -> Response {
    let accepted = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    let is_open = accepted.is_some_and(|text| text.contains("application/openmetrics-text"));
    let kind = if is_open { OPENMETRICS } else { PROMETHEUS };
    ([(CONTENT_TYPE, kind)], text(&desk, is_open)).into_response()
}

/// A text in one of the two formats, which differ in the names of counters and the end.
struct Text {
    text: String,
    is_open: bool,
}

fn text(desk: &Desk, is_open: bool) -> String {
    let mut text = Text {
        text: String::new(),
        is_open,
    };
    let live = &desk.0.live;
    text.info(live);
    text.quantities(live);
    text.histograms(live);
    text.device(live);
    let viewers = desk.0.viewers.load(Ordering::Relaxed) as f64;
    text.gauge(
        "viewers",
        "Pages and Foxglove clients that are connected.",
        viewers,
    );
    let dropped = live.dropped_frames() as f64;
    text.counter(
        "telemetry_dropped_frames",
        "Frames that viewers did not get in time.",
        dropped,
    );
    let lost = desk.0.lost_batches.load(Ordering::Relaxed) as f64;
    text.counter(
        "viewer_lost_batches",
        "Batches that stalled viewers lost.",
        lost,
    );
    if is_open {
        text.text.push_str("# EOF\n");
    }
    text.text
}

impl Text {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Help ends the line, so that a backslash and a line feed are escaped.
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        // A string can always be written to.
        let _ = writeln!(self.text, "# HELP tectum_{name} {help}");
        let _ = writeln!(self.text, "# TYPE tectum_{name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &str, value: f64) {
        let _ = writeln!(self.text, "tectum_{name}{labels} {}", number(value));
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.head(name, "gauge", help);
        self.sample(name, "", value);
    }

    fn counter(&mut self, name: &str, help: &str, value: f64) {
        let total = format!("{name}_total");
        let family = if self.is_open { name } else { &total };
        self.head(family, "counter", help);
        self.sample(&total, "", value);
    }

    fn info(&mut self, live: &Live) {
        let about = live.about();
        let device = about.receipt["device"]["id"].as_str().unwrap_or_default();
        let version = env!("CARGO_PKG_VERSION");
        let labels = [
            ("run", &*about.title),
            ("device", device),
            ("version", version),
        ];
        let labels = labels.map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
        // In the older format an info is a gauge.
        let (family, kind) = match self.is_open {
            true => ("run", "info"),
            false => ("run_info", "gauge"),
        };
        self.head(family, kind, "What runs, and on which device.");
        self.sample("run_info", &format!("{{{}}}", labels.join(",")), 1.0);
    }

    fn quantities(&mut self, live: &Live) {
        for quantity in live.quantities() {
            match quantity.kind {
                QuantityKind::Counter => {
                    self.counter(quantity.name, quantity.meaning, quantity.value());
                }
                QuantityKind::Gauge => {
                    self.gauge(quantity.name, quantity.meaning, quantity.value());
                }
            }
        }
    }

    fn histograms(&mut self, live: &Live) {
        for histogram in live.histograms() {
            let name = format!("{}_seconds", histogram.name);
            self.head(&name, "histogram", histogram.meaning);
            let buckets = histogram.cumulative();
            for (bound_s, count) in &buckets {
                let labels = format!("{{le=\"{}\"}}", number(*bound_s));
                self.sample(&format!("{name}_bucket"), &labels, *count as f64);
            }
            let count = buckets.last().map_or(0, |(_, count)| *count);
            self.sample(&format!("{name}_count"), "", count as f64);
            self.sample(&format!("{name}_sum"), "", histogram.sum_s());
        }
    }

    /// What the device's driver measures now.
    fn device(&mut self, live: &Live) {
        let Some(readings) = live.device().and_then(|device| device.readings()) else {
            return;
        };
        let gauges = [
            ("device_power_watts", "Power drawn.", readings.power_w),
            (
                "device_temperature_celsius",
                "Temperature of the chip.",
                readings.temperature_c.map(f64::from),
            ),
            (
                "device_clock_hertz",
                "Clock of the multiprocessors.",
                readings.clock_mhz.map(|mhz| 1e6 * f64::from(mhz)),
            ),
            (
                "device_memory_clock_hertz",
                "Clock of the memory.",
                readings.memory_clock_mhz.map(|mhz| 1e6 * f64::from(mhz)),
            ),
            (
                "device_memory_used_bytes",
                "Memory in use, by every process.",
                readings.memory_used_bytes.map(|bytes| bytes as f64),
            ),
            (
                "device_utilisation_ratio",
                "Share of the last sampling period in which a kernel ran.",
                readings.utilisation,
            ),
        ];
        for (name, help, value) in gauges {
            value
                .iter()
                .for_each(|value| self.gauge(name, help, *value));
        }
    }
}

/// A number as both formats write it.
fn number(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned()
    } else {
        value.to_string()
    }
}

/// The value of a label.
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
