//! Percentiles of an answer over a socket, and of the same bytes over TCP between two blocking
//! threads: `cargo run --release --example exchanges --features bench [COUNT]`.

fn main() -> Result<(), tectum::Error> {
    let count = std::env::args().nth(1).and_then(|count| count.parse().ok());
    let [answers, tcp] = tectum_link::exchanges(count.unwrap_or(20_000))?;
    let (answers, tcp) = (answers.percentiles(), tcp.percentiles());
    for (name, own, other) in [("p50", answers.p50, tcp.p50), ("p99", answers.p99, tcp.p99)] {
        println!(
            "{name}: {:.1} us served, {:.1} us TCP, ratio {:.2}",
            1e3 * own,
            1e3 * other,
            own / other
        );
    }
    Ok(())
}
