//! A record as tables.

use tectum_bench::bench;
use tectum_bench::bench::{BenchRecord, Interval, PeerBrief, PeerRow, Roofline, Row};

use crate::count::counted;
use crate::table::{bytes, table};

/// The rows, the rooflines and what each peer is.
pub fn record(record: &BenchRecord) -> String {
    let head = [
        "row",
        "median",
        "spread",
        "rate",
        "of roofline",
        "peer",
        "ratio [low, high]",
    ]
    .map(str::to_owned)
    .to_vec();
    let mut text = table(&[vec![head], record.rows.iter().flat_map(rows).collect()].concat());
    let (measured, machine) = (&record.measured, &record.machine);
    let gemm = measured.gemm_flop_per_s / 1e9;
    text += &format!(
        "\nmeasured here: copy {}/s, matrix product {gemm:.1} GFLOP/s",
        bytes(measured.copy_bytes_per_s)
    );
    text += &format!(
        " on {}, {}, {}\n",
        record.device,
        counted(machine.threads, "thread"),
        machine.simd
    );
    text += &record
        .rows
        .iter()
        .filter_map(predecessor)
        .collect::<String>();
    text += &record.peers.iter().map(peer).collect::<String>();
    text + &incomplete(record).map_or_else(String::new, |what| format!("interrupted: {what}\n"))
}

/// What an incomplete record has; none for a complete one.
pub fn incomplete(record: &BenchRecord) -> Option<String> {
    let planned = record.interrupted?;
    let rounds = record.rows.iter().map(|row| row.rounds_s.len());
    let (low, high) = (rounds.clone().min()?, rounds.max()?);
    let rounds = if low == high {
        low.to_string()
    } else {
        format!("{low} to {high}")
    };
    Some(format!(
        "{} of {} measured, in {rounds} of {}",
        record.rows.len(),
        counted(planned.rows, "row"),
        counted(planned.rounds, "round")
    ))
}

/// Speed-up of a row over the predecessor's interpreter, if measured.
fn predecessor(row: &Row) -> Option<String> {
    let seconds = bench::predecessor_seconds(&row.key)?;
    Some(format!(
        "{}: {:.0} times as fast as the predecessor's interpreter, which took {:.0} ms on two cores\n",
        row.key,
        seconds / row.median_s,
        seconds * 1e3
    ))
}

/// A median with its interval.
pub fn interval(value: &Interval) -> String {
    format!("{:.2} [{:.2}, {:.2}]", value.median, value.low, value.high)
}

/// A line for the row, or one for each of its peers.
fn rows(row: &Row) -> Vec<Vec<String>> {
    let rate = match row.roofline {
        Roofline::Gemm | Roofline::GemmI8 => format!("{:.1} GFLOP/s", row.rate / 1e9),
        Roofline::Copy => format!("{}/s", bytes(row.rate)),
    };
    let ours = vec![
        row.key.clone(),
        format!("{:.1} us", row.median_s * 1e6),
        format!("{:.0} %", row.spread * 100.0),
        rate,
        format!("{:.0} %", row.percent_of_roofline),
    ];
    let mut lines: Vec<Vec<String>> = row
        .peers
        .iter()
        .map(|peer| [vec![String::new(); ours.len()], ratio_cells(peer)].concat())
        .collect();
    match lines.first_mut() {
        Some(first) => first[..ours.len()].clone_from_slice(&ours),
        None => lines.push(ours),
    }
    lines
}

fn ratio_cells(peer: &PeerRow) -> Vec<String> {
    let skipped = || {
        format!(
            "skipped: {}",
            peer.skipped.as_deref().unwrap_or("not timed")
        )
    };
    vec![
        peer.peer.clone(),
        peer.ratio.as_ref().map_or_else(skipped, interval),
    ]
}

fn peer(peer: &PeerBrief) -> String {
    let what = match &peer.skipped {
        Some(reason) => format!("skipped: {reason}"),
        None => {
            let versions: Vec<String> = peer
                .versions
                .iter()
                .map(|(name, version)| format!("{name} {version}"))
                .collect();
            format!(
                "{}; {}",
                versions.join(", "),
                counted(peer.threads.unwrap_or(0), "thread")
            )
        }
    };
    format!("peer {}: {what}\n", peer.name)
}
