//! The table at the end of a run.

use serde_json::Value;
use tectum_control::body::task::Measure;
use tectum_control::closed_loop::Outcome;
use tectum_control::run_folder::RunSummary;

use crate::table::table;

/// The table, with one line for each fallback.
pub fn text(summary: &RunSummary, outcome: &Outcome) -> String {
    let tick = summary.tick_ms;
    let mut rows = vec![
        row("scenario", format!("{}: {} on {}, seed {}", summary.scenario, summary.brain, summary.body, summary.seed)),
        row("device", outcome.receipt.device.to_string()),
        row("time", format!("{:.2} s, {} ticks, {}", summary.seconds, summary.ticks, summary.end)),
        row("deadline misses", summary.deadline_misses.to_string()),
        row("tick latency", format!("p50 {:.3} ms, p99 {:.3} ms, max {:.3} ms", tick.p50, tick.p99, tick.max)),
        row("wake-up delay", woken(summary)),
        row("transfers per tick", format!("{} up, {} down", count(&summary.transfers_per_tick["up"]), count(&summary.transfers_per_tick["down"]))),
        row("return", format!("{:.3} in {} episode(s)", summary.total_reward, summary.episodes)),
        row("run folder", summary.run_folder.clone()),
    ];
    if let Some(task) = &summary.task {
        let Measure { success, hold_s, .. } = &task.measure;
        let lasting = if *hold_s == 1.0 { "a second".to_owned() } else { format!("{hold_s} s") };
        let time = task.time_to_success_s.map_or_else(|| format!("never for {lasting}"), |seconds| format!("{seconds:.2} s"));
        let fraction = format!("{:.1} %", 100.0 * task.success_fraction);
        rows.splice(3..3, [row(&format!("time to {success}"), time), row(&format!("fraction {success}"), fraction)]);
    }
    if let Some(learned) = summary.learning {
        let better = learned.rounds - learned.rejected;
        let lost = if learned.lost > 0 { format!(", {} transitions lost", learned.lost) } else { String::new() };
        rows.push(row("learning", format!("{} transitions, {} rounds, {better} of them better than before{lost}", learned.transitions, learned.rounds)));
    }
    for fallback in &outcome.receipt.fallbacks {
        rows.push(row("fallback", format!("{}: {} ({} times)", fallback.what, fallback.reason, fallback.count)));
    }
    for recovery in &outcome.receipt.recoveries {
        let to = recovery.to.as_deref().unwrap_or("the host");
        let injected = if recovery.injected { ", injected" } else { "" };
        let resumed = recovery.resumed_at_tick.map_or_else(|| "not resumed".to_owned(), |tick| format!("resumed at tick {tick} on {to}"));
        let lost = format!("{} ticks lost, {} without the brain", recovery.ticks_lost, recovery.safe_ticks);
        rows.push(row("recovery", format!("tick {}{injected}: {resumed}, {lost}", recovery.tick)));
    }
    for launch in outcome.receipt.launches.iter().flatten() {
        let time = launch.ns.map_or_else(|| "not timed by the device".to_owned(), |ns| format!("{:.1} us", ns as f64 / 1e3));
        rows.push(row("launch", format!("{} {time}", launch.kernel)));
    }
    table(&rows)
}

/// How late the loop woke up, and under which priority.
fn woken(summary: &RunSummary) -> String {
    let late = match summary.lateness_ms {
        Some(late) => format!("p50 {:.3} ms, p99 {:.3} ms, max {:.3} ms", late.p50, late.p99, late.max),
        None => "none: time is simulated".to_owned(),
    };
    let granted = summary.real_time.as_ref();
    let priority = granted.and_then(|granted| granted.priority).map_or_else(String::new, |priority| format!("; SCHED_FIFO {priority}"));
    let locked = granted.and_then(|granted| granted.locked_bytes).map_or_else(String::new, |bytes| format!("; {} MiB locked", bytes >> 20));
    format!("{late}{priority}{locked}")
}

fn row(name: &str, value: String) -> Vec<String> {
    vec![name.to_owned(), value]
}

fn count(number: &Value) -> String {
    match number.as_u64() {
        Some(whole) => whole.to_string(),
        None => format!("{:.2}", number.as_f64().unwrap_or(0.0)),
    }
}
