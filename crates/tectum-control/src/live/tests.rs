//! Rings, histories, orders and paces.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::*;
use crate::clock::{Clock, ClockKind, SimClock};

fn spec(series: usize) -> StreamSpec {
    let name = |place: usize| Series::new(format!("s{place}"), "m", Group::Observation);
    StreamSpec::new("loop", "tick", 0.01, (0..series).map(name).collect())
}

fn steps(update: &Update) -> Vec<u64> {
    let step = |frame: &[u32]| Update::step_and_time(frame).0;
    update.frames().map(step).collect()
}

#[test]
fn frames_arrive_in_order_with_step_time_marks_and_numbers() {
    let live = Live::new(ClockKind::Sim);
    let mut writer = live.add_stream(spec(2));
    assert!(live.drain().updates.is_empty());
    let far = u64::from(u32::MAX) + 7;
    writer.write(far, far + 1, Marks::MISSED | Marks::HELD, [1.5, -2.0]);
    // One number too few, and one too many.
    writer.write(far + 1, far + 2, Marks::NONE, [3.0]);
    writer.write(far + 2, far + 3, Marks::NONE, [4.0, 5.0, 6.0]);
    let news = live.drain();
    let update = &news.updates[0];
    assert_eq!(steps(update), [far, far + 1, far + 2]);
    let first = update.frames().next().expect("three");
    assert_eq!(Update::step_and_time(first).1, far + 1);
    assert_eq!(first[4], 3);
    assert_eq!(update.values(0), [1.5, -2.0]);
    assert!(update.values(1)[0] == 3.0 && update.values(1)[1].is_nan());
    assert_eq!(update.values(2), [4.0, 5.0]);
    assert_eq!(update.left_out, 0);
    assert!(live.drain().updates.is_empty());
}

#[test]
fn a_full_ring_drops_frames_and_counts_them() {
    let live = Live::new(ClockKind::Sim);
    let mut writer = live.add_stream(spec(1));
    for step in 0..10_000 {
        writer.write(step, step, Marks::NONE, [0.0]);
    }
    assert_eq!(live.dropped_frames(), 10_000 - 8_192);
    let update = live.drain().updates.remove(0);
    assert_eq!(update.frames().len(), MAX_UPDATE_FRAMES);
    assert_eq!(update.left_out, 10_000 - MAX_UPDATE_FRAMES as u64);
    assert_eq!(steps(&update).last(), Some(&8_191), "the latest is kept");
    writer.write(10_000, 0, Marks::NONE, [0.0]);
    let update = live.drain().updates.remove(0);
    assert_eq!((steps(&update), update.left_out), (vec![10_000], 0));
}

#[test]
fn the_marks_of_frames_that_are_left_out_are_kept() {
    let live = Live::new(ClockKind::Sim);
    let mut writer = live.add_stream(spec(1));
    for step in 0..2_560 {
        writer.write(step, step, Marks::MISSED.when(step == 1_203), [0.0]);
    }
    let update = live.drain().updates.remove(0);
    let marked: Vec<u64> = update
        .frames()
        .filter(|frame| frame[4] != 0)
        .map(|frame| Update::step_and_time(frame).0)
        .collect();
    assert_eq!(marked, [1_209], "the last one of its ten");
}

#[test]
fn a_later_viewer_gets_a_bounded_past() {
    let live = Live::new(ClockKind::Sim);
    let mut writer = live.add_stream(spec(3));
    for batch in 0..40 {
        for step in 0..200 {
            writer.write(batch * 200 + step, 0, Marks::NONE, [0.0; 3]);
        }
        live.drain();
    }
    let past = live.past();
    let steps = steps(&past.updates[0]);
    assert_eq!(steps, (8_000 - 4_096..8_000).collect::<Vec<_>>());
    assert_eq!(past.specs[0].series.len(), 3);
}

#[test]
fn a_raster_has_a_bit_for_each_row_and_hidden_numbers_are_drawn() {
    let live = Live::new(ClockKind::Sim);
    let rows = |name: &str, rows| RasterRows {
        name: name.to_owned(),
        rows,
    };
    let spec = StreamSpec {
        raster: vec![rows("a", 30), rows("b", 10)],
        ..spec(1)
    };
    let draw: Draw = Box::new(|frame| {
        assert_eq!((frame.values, frame.hidden), (&[7.0][..], &[0.1, -3.5][..]));
        Some(Schematic::new([0.0, 0.0], [1.0, 2.0]))
    });
    let mut writer = live.add_drawn_stream(spec, 2, Some(draw));
    writer.write_all(0, 0, Marks::NONE, [7.0], &[0, 31, 39, 64], &[0.1, -3.5]);
    let news = live.drain();
    let frame = news.updates[0].frames().next().expect("one");
    assert_eq!(frame.len(), FRAME_WORDS + 1 + 2);
    assert_eq!(frame[FRAME_WORDS + 1..], [1 | 1 << 31, 1 << 7]);
    assert_eq!(news.drawing.map(|drawing| drawing.max), Some([1.0, 2.0]));
}

#[test]
fn events_are_kept_up_to_a_number_and_never_waited_for() {
    let live = Live::new(ClockKind::Sim);
    let mut writer = live.event_writer();
    let event = |step| Event {
        step,
        time_s: 0.0,
        kind: EventKind::Fallback,
        text: String::new(),
    };
    for step in 0..3 * MAX_EVENTS as u64 {
        writer.add(event(step));
        writer.send();
    }
    assert_eq!(live.drain().events.len(), MAX_EVENTS);
    for step in 0..10 {
        writer.add(event(1_000 + step));
        writer.send();
    }
    live.drain();
    let past = live.past().events;
    assert_eq!(past.len(), MAX_EVENTS);
    assert_eq!(past.last().map(|event| event.step), Some(1_009));
}

#[test]
fn a_paused_run_makes_the_steps_that_are_ordered_and_continues() {
    let live = Live::new(ClockKind::Sim);
    let controls = live.controls().clone();
    controls.pause(true).expect("simulated");
    assert!(live.is_ticking(), "paused is no fault");
    for _ in 0..3 {
        controls.step().expect("simulated");
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let ticks = scope.spawn(|| {
            let ended = || is_over.load(Ordering::Relaxed);
            let mut clock = PacedClock::new(controls.clone(), &ended);
            let mut ticks = 0;
            while !ended() {
                clock.wait_until(ticks * 1_000);
                ticks += 1;
            }
            ticks
        });
        std::thread::sleep(Duration::from_millis(100));
        is_over.store(true, Ordering::Relaxed);
        // The wait that was broken off is one more.
        assert_eq!(ticks.join().expect("no panic"), 4);
    });
}

#[test]
fn a_speed_makes_time_pass_as_fast_and_results_are_those_of_the_simulated_clock() {
    let live = Live::new(ClockKind::Sim);
    live.controls().set_speed(Some(10.0)).expect("in range");
    let never = || false;
    let mut clock = PacedClock::new(live.controls().clone(), &never);
    let mut simulated = SimClock::new();
    let begin = Instant::now();
    for tick in 0..11 {
        let deadline_ns = tick * 100_000_000;
        assert_eq!(
            clock.wait_until(deadline_ns),
            simulated.wait_until(deadline_ns)
        );
        assert_eq!(clock.now_ns(), simulated.now_ns());
    }
    assert!(begin.elapsed() >= Duration::from_millis(100));
    assert!(!clock.is_real());
}

#[test]
fn under_a_real_clock_a_run_is_only_stopped() {
    let live = Live::new(ClockKind::Real);
    let controls = live.controls();
    for refused in [
        controls.pause(true),
        controls.step(),
        controls.set_speed(None),
    ] {
        let error = refused.expect_err("refused").to_string();
        assert!(
            error.ends_with("the clock of this run is real; only stop is possible"),
            "{error}"
        );
    }
    let (press, pressed) = std::sync::mpsc::channel();
    controls.set_stop(move || press.send(()).expect("the test waits"));
    controls.stop();
    assert!(pressed.try_recv().is_ok() && !controls.is_stopped());
    let simulated = Live::new(ClockKind::Sim);
    let error = simulated.controls().set_speed(Some(0.0));
    assert!(error.is_err_and(|error| error.to_string().contains("speed 0: it needs 0.01 to 1000")));
    simulated.controls().stop();
    assert!(simulated.controls().is_stopped());
}
