//! Percentiles of an answer over a socket, of the same bytes over TCP between two blocking threads,
//! and of openpi's own server, as a line of JSON: `cargo run --release -p tectum-link --example
//! exchanges --features bench [COUNT [CHECKOUT_OF_OPENPI PYTHON]]`.

use std::path::Path;

use serde_json::{Map, Value, json};
use tectum_link::OpenpiServer;

fn main() -> Result<(), tectum::Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let count = arguments.first().and_then(|count| count.parse().ok());
    let openpi = match &arguments[..] {
        [_, checkout, python] => Some(OpenpiServer {
            checkout: Path::new(checkout),
            python: Path::new(python),
        }),
        _ => None,
    };
    let measured = tectum_link::exchanges(count.unwrap_or(20_000), openpi)?;
    let mut sides = Map::new();
    for (name, histogram) in &measured {
        let ms = histogram.percentiles();
        let us = |ms: f64| (1e4 * ms).round() / 10.0;
        let side = json!({ "p50_us": us(ms.p50), "p99_us": us(ms.p99), "max_us": us(ms.max) });
        sides.insert((*name).to_owned(), side);
    }
    let [tectum, tcp] = [measured[0].1.percentiles(), measured[1].1.percentiles()];
    let ratio = |own: f64, other: f64| (100.0 * own / other).round() / 100.0;
    let to_tcp = json!({ "p50": ratio(tectum.p50, tcp.p50), "p99": ratio(tectum.p99, tcp.p99) });
    println!(
        "{}",
        Value::from(Map::from_iter([
            (
                "device".to_owned(),
                tectum::Device::open("cpu")?.info().name.clone().into()
            ),
            ("sides".to_owned(), sides.into()),
            ("times_of_tcp".to_owned(), to_tcp),
        ]))
    );
    Ok(())
}
