//! The table at the end of a run.

use serde_json::Value;
use tectum::{Latency, Recovery};
use tectum_control::body::link::LinkSummary;
use tectum_control::body::task::Measure;
use tectum_control::closed_loop::{EpisodeReturns, Outcome, Overrun, TaskSummary};
use tectum_control::run_folder::RunSummary;

use crate::count::counted;
use crate::table::table;

/// The table, with one line for each fallback.
pub fn text(summary: &RunSummary, outcome: &Outcome) -> String {
    let mut rows = vec![
        row(
            "scenario",
            format!(
                "{}: {} on {}, seed {}",
                summary.scenario, summary.brain, summary.body, summary.seed
            ),
        ),
        row("device", devices(summary, outcome)),
        row(
            "time",
            format!(
                "{:.2} s, {}, {}",
                summary.seconds,
                counted(summary.ticks, "tick"),
                summary.end
            ),
        ),
        row("deadline misses", misses(summary)),
        row(
            "tick latency",
            format!(
                "{}; period {} ms",
                latency(&summary.tick_ms),
                (1e3 * summary.period_ms).round() / 1e3
            ),
        ),
        row("wake-up delay", woken(summary)),
        row(
            "transfers per tick",
            format!(
                "{} up, {} down",
                count(&summary.transfers_per_tick["up"]),
                count(&summary.transfers_per_tick["down"])
            ),
        ),
        row("return", returns(summary)),
        row("run folder", summary.run_folder.clone()),
    ];
    if let Some(motors) = motors(summary) {
        rows.insert(6, row("motors", motors));
    }
    if let Some(link) = &summary.link {
        let place = rows.len() - 2;
        rows.splice(place..place, linked(link));
    }
    if let [_, _, ..] = &summary.devices[..] {
        let of_device = summary
            .devices
            .iter()
            .map(|used| row(&format!("  of {}", used.device), latency(&used.tick_ms)));
        let place = rows
            .iter()
            .position(|row| row[0] == "tick latency")
            .map_or(rows.len(), |place| place + 1);
        rows.splice(place..place, of_device);
    }
    if let Some(task) = &summary.task {
        rows.splice(3..3, judged(task));
    }
    if let Some(learned) = summary.learning {
        let better = learned.rounds - learned.rejected;
        let lost = if learned.lost > 0 {
            format!(", {} transitions lost", learned.lost)
        } else {
            String::new()
        };
        rows.push(row(
            "learning",
            format!(
                "{} transitions, {} rounds, {better} of them better than before{lost}",
                learned.transitions, learned.rounds
            ),
        ));
    }
    rows.extend(summary.notes.iter().map(|note| row("note", note.clone())));
    for fallback in &outcome.receipt.fallbacks {
        let times = if fallback.count > 1 {
            format!(" ({} times)", fallback.count)
        } else {
            String::new()
        };
        // What a brain says of its body is no change of plan.
        let label = if fallback.what == format!("brain {}", summary.brain) {
            "note"
        } else {
            "fallback"
        };
        rows.push(row(
            label,
            format!("{}: {}{times}", fallback.what, fallback.reason),
        ));
    }
    for recovery in &outcome.receipt.recoveries {
        rows.push(row("recovery", recovered(recovery)));
    }
    for launch in outcome.receipt.launches.iter().flatten() {
        let time = launch.ns.map_or_else(
            || "not timed by the device".to_owned(),
            |ns| format!("{:.1} us", ns as f64 / 1e3),
        );
        rows.push(row("launch", format!("{} {time}", launch.kernel)));
    }
    table(&rows)
}

/// The devices that answered, one after the other.
fn devices(summary: &RunSummary, outcome: &Outcome) -> String {
    let moved = summary
        .devices
        .iter()
        .skip(1)
        .map(|used| format!(" until tick {}, then {}", used.from_tick, used.device));
    outcome.receipt.device.to_string() + &moved.collect::<String>()
}

fn latency(latency: &Latency) -> String {
    format!(
        "p50 {:.3} ms, p99 {:.3} ms, max {:.3} ms",
        latency.p50, latency.p99, latency.max
    )
}

/// How many periods got no answer in time, and what the body got for them.
fn misses(summary: &RunSummary) -> String {
    let got = match summary.overrun {
        Overrun::Hold => "held the last action",
        Overrun::Safe => "got the safe action",
    };
    let ticks = summary.ticks;
    let simulated = if summary.lateness_ms.is_none() {
        ": time is simulated"
    } else {
        ""
    };
    if summary.deadline_misses == 0 {
        format!("none of {ticks}{simulated}")
    } else {
        format!("{} of {ticks} late: {got}", summary.deadline_misses)
    }
}

/// The whole return, and of several episodes how they ended and what each returned.
fn returns(summary: &RunSummary) -> String {
    let mut text = format!(
        "{:.3} in {}",
        summary.total_reward,
        counted(summary.episodes, "episode")
    );
    if let Some(EpisodeReturns { min, mean, max }) = summary.episode_return {
        let (ended, terminated) = (summary.ended_episodes, summary.terminated_episodes);
        let limited = if ended > terminated {
            format!(", {} at its time limit", ended - terminated)
        } else {
            String::new()
        };
        text += &format!(
            "; {terminated} ended by the body{limited}: {min:.3} to {max:.3} each, mean {mean:.3}"
        );
    }
    text
}

/// The rows of a task: its losses, or how long its success took and lasted.
fn judged(task: &TaskSummary) -> Vec<Vec<String>> {
    let Measure { hold_s, loss, .. } = &task.measure;
    let success = task.measure.success.replace('_', " ");
    if let Some(loss) = loss {
        return vec![row(loss, task.losses.to_string())];
    }
    let lasting = if *hold_s == 1.0 {
        "a second".to_owned()
    } else {
        format!("{hold_s} s")
    };
    let time = task.time_to_success_s.map_or_else(
        || format!("never for {lasting}"),
        |seconds| format!("{seconds:.2} s"),
    );
    let fraction = format!("{:.1} %", 100.0 * task.success_fraction);
    vec![
        row(&format!("time to {success}"), time),
        row(&format!("fraction {success}"), fraction),
    ]
}

/// What a fault cost, in a sentence.
fn recovered(recovery: &Recovery) -> String {
    let injected = if recovery.injected { " (injected)" } else { "" };
    let without = format!(
        "{} passed without the brain",
        counted(recovery.safe_ticks, "tick")
    );
    let Some(tick) = recovery.resumed_at_tick else {
        return format!(
            "tick {}{injected}: the brain did not continue; {without}",
            recovery.tick
        );
    };
    let place = recovery
        .to
        .as_deref()
        .map_or_else(String::new, |device| format!(" on {device}"));
    let lost = match recovery.ticks_lost {
        0 => "with its whole state".to_owned(),
        lost => format!(
            "with its state before tick {}: {} lost",
            recovery.snapshot_tick,
            counted(lost, "tick")
        ),
    };
    format!(
        "tick {}{injected}: the brain continued at tick {tick}{place} {lost}; {without}",
        recovery.tick
    )
}

/// The periods of motors that are driven in each period of the policy; none for other bodies.
fn motors(summary: &RunSummary) -> Option<String> {
    let period = format!("a period of {} ms", summary.motor_period_ms?);
    Some(
        match (summary.motor_deadline_misses, &summary.motor_lateness_ms) {
            (Some(misses), Some(lateness)) => {
                format!(
                    "{period}, {misses} missed; begun {} late",
                    latency(lateness)
                )
            }
            _ => period,
        },
    )
}

/// The connection of a body outside of the process: its periods, ages and messages.
fn linked(link: &LinkSummary) -> Vec<Vec<String>> {
    let periods = [
        ("fresh", link.fresh_periods),
        ("held", link.held_periods),
        ("waiting", link.waiting_periods),
        ("stale", link.stale_periods),
        ("disconnected", link.disconnected_periods),
        ("disarmed", link.disarmed_periods),
    ];
    let periods: Vec<String> = periods
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    let counts = &link.counts;
    let mut rows = vec![row(
        "link",
        format!(
            "{}; {}, {} repeated, {} unreadable",
            periods.join(", "),
            counted(counts.connections, "connection"),
            counts.repeated_messages,
            counts.unreadable_messages
        ),
    )];
    let measured = [
        ("  observation age", &link.observation_age_ms),
        ("  action age", &link.action_age_ms),
        ("  queue", &link.queue_ms),
        ("  network", &link.network_ms),
    ];
    let measured = measured.iter().filter(|(_, ms)| ms.max > 0.0);
    rows.extend(measured.map(|(name, ms)| row(name, latency(ms))));
    rows
}

/// How late the loop woke up, and under which priority.
fn woken(summary: &RunSummary) -> String {
    let late = match summary.lateness_ms {
        Some(late) => format!(
            "p50 {:.3} ms, p99 {:.3} ms, max {:.3} ms",
            late.p50, late.p99, late.max
        ),
        None => "none: time is simulated".to_owned(),
    };
    let granted = summary.real_time.as_ref();
    let priority = granted
        .and_then(|granted| granted.priority)
        .map_or_else(String::new, |priority| format!("; SCHED_FIFO {priority}"));
    let locked = granted
        .and_then(|granted| granted.locked_bytes)
        .map_or_else(String::new, |bytes| format!("; {} MiB locked", bytes >> 20));
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
