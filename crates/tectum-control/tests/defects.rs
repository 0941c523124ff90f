//! Defects that a review found despite passing tests, one test each, numbered as in the review:
//! files that were torn or lost, states that were overwritten or accepted.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tectum::snapshot::{Array, Snapshot};
use tectum::{Device, ErrorKind};
use tectum_control::body::body;
use tectum_control::clock::SimClock;
use tectum_control::closed_loop::{ClosedLoop, Sink};
use tectum_control::recording::{Recorder, Trace, recover_recording};
use tectum_control::run_folder::{
    RECEIPT_FILE, RunFolder, RunSummary, SCENARIO_FILE, SNAPSHOT_FILE, SUMMARY_FILE, TRACE_FILE,
};
use tectum_control::scenario::Scenario;
use tectum_control::scenario::build::{build_body, build_brain};
use tectum_control::twin::{
    Ensemble, Learner, Network as TwinNetwork, OnlineSettings, Plant, SequenceLayout,
    TrainingProvenance, Twin, TwinLayout, TwinRecipe,
};
use tectum_spiking::{
    IdleUpdate, Network, NetworkOptions, NeuronOptions, Neurons, Simulation, SimulationOptions,
    SynapseList,
};

use crate::power_loss::{Place, each_failure, each_step};

fn cpu() -> Device {
    Device::open("cpu").expect("always there")
}

fn numbered(number: u32, len: usize) -> Snapshot {
    let mut snapshot = Snapshot::default();
    snapshot.insert("number", Array::U32(vec![number; len]));
    snapshot
}

#[test]
fn defect_18_every_load_of_a_snapshot_with_concurrent_savers_is_whole() {
    let place = Place::new("savers");
    let path = place.0.join("state.safetensors");
    numbered(0, 1000).save(&path).expect("writable");
    std::thread::scope(|scope| {
        for saver in 0..8u32 {
            let path = &path;
            scope.spawn(move || {
                for round in 0..40 {
                    numbered(saver, 1000 * (1 + saver as usize))
                        .save(path)
                        .expect("its partial file is its own");
                    let loaded = Snapshot::load(path)
                        .unwrap_or_else(|error| panic!("{saver} {round}: {error}"));
                    let len = loaded.len_of("number").expect("there");
                    let found = loaded.u32("number", len).expect("there")[0];
                    assert!(loaded == numbered(found, 1000 * (1 + found as usize)));
                }
            });
        }
    });
    assert_eq!(
        place.names(),
        ["state.safetensors"],
        "no other file is left"
    );
}

#[test]
fn a_crash_at_any_step_leaves_the_old_snapshot_or_the_new_one() {
    let place = Place::new("steps");
    let path = place.0.join("state.safetensors");
    numbered(1, 10).save(&path).expect("writable");
    let check = |step: usize, folder: &Path| {
        let found = Snapshot::load(&folder.join("state.safetensors"))
            .unwrap_or_else(|error| panic!("step {step}: {error}"));
        assert!(
            found == numbered(1, 10) || found == numbered(2, 100_000),
            "step {step}"
        );
    };
    let (saved, steps) = each_step(&place.0, || numbered(2, 100_000).save(&path), check);
    saved.expect("writable");
    assert!(steps >= 5 && Snapshot::load(&path).expect("whole") == numbered(2, 100_000));
    each_failure(|| numbered(1, 10).save(&path), |step| check(step, &place.0));
    assert_eq!(place.names(), ["state.safetensors"]);
}

/// An ensemble whose weights all have the same value.
fn ensemble(number: f32, width: usize) -> Ensemble {
    let layout = SequenceLayout { lags: 2 };
    let network = TwinNetwork::new(layout.features(), &[width], 3).expect("a width above 0");
    let named = |name: &str, unit: &str| (name.to_owned(), unit.to_owned());
    let plant = Plant {
        channels: [
            named("la_position", "in"),
            named("pend_velocity", "deg/s"),
            named("pend_position", "deg"),
        ],
        command: named("cmd_volts", "V"),
        period_s: 0.04,
    };
    let members = vec![vec![number; network.parameters().len()]];
    let numbers = || vec![number; 3];
    Ensemble {
        layout,
        network,
        members,
        mean: numbers(),
        deviation: numbers(),
        noise: numbers(),
        plant,
        origin: TrainingProvenance::default(),
        file_hash: None,
    }
}

#[test]
fn a_crash_at_any_step_leaves_the_old_twin_or_the_new_one() {
    let place = Place::new("twins");
    let path = place.0.join("twin.safetensors");
    let (old, new) = (ensemble(1.0, 8), ensemble(2.0, 500));
    old.save(&path).expect("writable");
    let check = |step: usize, folder: &Path| {
        let found = Ensemble::load(&folder.join("twin.safetensors"))
            .unwrap_or_else(|error| panic!("step {step}: {error}"));
        assert!(
            [(1.0, 8), (2.0, 500)]
                .iter()
                .any(|(number, width)| found.mean == [*number; 3]
                    && found.network.hidden() == [*width]),
            "step {step}"
        );
    };
    let (saved, steps) = each_step(&place.0, || new.save(&path), check);
    saved.expect("writable");
    assert!(steps >= 5 && Ensemble::load(&path).expect("whole").mean == new.mean);
    each_failure(|| old.save(&path), |step| check(step, &place.0));
    assert_eq!(place.names(), ["twin.safetensors"]);
}

/// At any step of a run, a crash leaves only complete files, and a complete folder has all of them.
#[test]
fn a_crash_at_any_step_of_a_run_folder_leaves_whole_files() {
    let place = Place::new("run-steps");
    let text = "[body]\nname = \"rig\"\n[brain]\nname = \"lqr\"\n[loop]\nseconds = 2\nclock = \"sim\"\nsnapshot_every = 7\n";
    let scenario = Scenario::parse(text, "test", "test").expect("correct");
    let runs = place.0.clone();
    let run = || {
        let plant = build_body(&scenario).expect("known");
        let brain = build_brain(
            &scenario,
            plant.as_ref(),
            &cpu(),
            &mut tectum::WorkProgress::ignore,
        )
        .expect("known");
        let mut closed_loop = ClosedLoop::new(plant, brain, &scenario.run, &cpu()).expect("cpu");
        let mut folder = RunFolder::create(&runs, &scenario, &mut closed_loop).expect("writable");
        let outcome = closed_loop.run(&mut SimClock::new(), &mut folder, &mut |_| {
            ControlFlow::Continue(())
        });
        let summary = RunSummary::new(&scenario, &outcome, None, 0, folder.complete_path());
        folder.write(&outcome, &summary).expect("writable");
        folder.complete().expect("its own number")
    };
    let check = |step: usize, runs: &Path| {
        for (folder, is_complete) in [("1.partial", false), ("1", true)] {
            let path = |name: &str| runs.join(folder).join(name);
            let there = |name: &str| {
                let found = path(name).exists();
                assert!(
                    found || !is_complete || !runs.join(folder).exists(),
                    "step {step}: {folder} lacks {name}"
                );
                found
            };
            if there(SCENARIO_FILE) {
                Scenario::read(&path(SCENARIO_FILE))
                    .unwrap_or_else(|error| panic!("step {step}: {error}"));
            }
            if there(SNAPSHOT_FILE) {
                Snapshot::load(&path(SNAPSHOT_FILE))
                    .unwrap_or_else(|error| panic!("step {step}: {error}"));
                assert!(
                    path(SCENARIO_FILE).exists(),
                    "step {step}: a snapshot without its scenario"
                );
            }
            for name in [RECEIPT_FILE, SUMMARY_FILE]
                .into_iter()
                .filter(|name| there(name))
            {
                let bytes = std::fs::read(path(name)).expect("there");
                serde_json::from_slice::<Value>(&bytes)
                    .unwrap_or_else(|error| panic!("step {step}: {name}: {error}"));
            }
        }
    };
    let (folder, steps) = each_step(&place.0, run, check);
    assert!(steps > 50, "{steps}");
    assert_eq!(folder, place.0.join("1"));
}

/// For any written part of a recording, its complete chunks are read.
#[test]
fn defect_24_a_recording_that_was_cut_anywhere_is_recovered_to_its_last_whole_chunk() {
    let spec = body("pendulum", None).expect("known").spec().clone();
    let mut recorder =
        Recorder::new(std::io::Cursor::new(Vec::new()), &spec, None).expect("in memory");
    let place = Place::new("recover");
    let scenario = Scenario::parse(
        "[body]\nname = \"pendulum\"\n[brain]\nname = \"zero\"\n",
        "test",
        "test",
    )
    .expect("correct");
    let plant = build_body(&scenario).expect("known");
    let brain = build_brain(
        &scenario,
        plant.as_ref(),
        &cpu(),
        &mut tectum::WorkProgress::ignore,
    )
    .expect("known");
    let mut closed_loop = ClosedLoop::new(plant, brain, &scenario.run, &cpu()).expect("cpu");
    let mut folder = RunFolder::create(&place.0, &scenario, &mut closed_loop).expect("writable");
    for tick in 0..170 {
        let record = tectum_control::closed_loop::TickRecord {
            tick,
            time_ns: tick * 50_000_000,
            observation: &[0.1, 0.2],
            action: &[-2.0],
            measure: 0.1,
            reward: -1.0,
            held: false,
            fallback: false,
            terminated: false,
            timing: None,
            link: None,
            commands: None,
        };
        recorder.push(&record).expect("in memory");
        folder.tick(&record).expect("writable");
    }
    // As after a kill: nothing was finished.
    let killed = std::fs::read(folder.path().join(TRACE_FILE)).expect("there");
    let trace =
        Trace::parse(&recover_recording(&killed).expect("a recording").bytes).expect("whole");
    assert!(
        trace.ticks.len() >= 150 && trace.messages == 3 * trace.ticks.len(),
        "{} ticks",
        trace.ticks.len()
    );
    let whole = recorder.finish().expect("in memory").into_inner();
    assert_eq!(
        recover_recording(&whole).expect("a recording").bytes,
        whole,
        "a whole one stays as it is"
    );
    let mut last = 0;
    for end in (8..whole.len()).step_by(37).chain([whole.len() - 1]) {
        let found = recover_recording(&whole[..end]).expect("a recording");
        let trace = Trace::parse(&found.bytes).unwrap_or_else(|error| panic!("{end}: {error}"));
        assert_eq!(trace.messages as u64, found.messages);
        assert!(
            found.messages.is_multiple_of(150) || found.messages == 510,
            "{end}: {} messages",
            found.messages
        );
        assert!(
            trace.ticks.len() >= last
                && trace
                    .ticks
                    .iter()
                    .zip(0..)
                    .all(|(tick, number)| tick.tick == number),
            "{end}"
        );
        assert_eq!(
            mcap::MessageStream::new(&found.bytes)
                .expect("an MCAP file")
                .filter(Result::is_ok)
                .count() as u64,
            found.messages,
            "{end}"
        );
        last = trace.ticks.len();
    }
    assert_eq!(last, 170, "with its data whole, only the index is lost");
    assert!(recover_recording(b"no recording").is_err());
}

fn layout() -> TwinLayout {
    TwinLayout::of(body("pendulum", None).expect("known").spec(), false).expect("one action")
}

fn learner(settings: OnlineSettings, is_trained: bool, steps: usize) -> (Learner, Twin) {
    let recipe = TwinRecipe {
        hidden: vec![16],
        steps,
        batch: 64,
        ..TwinRecipe::default()
    };
    let twin = Twin::untrained(&layout(), &recipe.hidden).expect("a width above 0");
    (
        Learner::new(&twin, is_trained, &recipe, settings, 7).expect("it starts"),
        twin,
    )
}

/// Offers transitions that depend only on their number.
fn offer(learner: &mut Learner, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let [angle, speed, torque] =
            [0.37, 0.11, 0.73].map(|step| (f64::from(number) * step).sin() as f32);
        learner.push_transition(
            &[angle, speed],
            [0.0, torque],
            &[angle + 0.05 * speed, speed + 0.05 * torque],
        );
        // The learner's thread may hold the experience for a moment; no transition may be dropped
        // here.
        if number % 16 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn rounds_done(learner: &Learner, rounds: u64) {
    let begin = Instant::now();
    while learner.counts().rounds < rounds {
        assert!(begin.elapsed() < Duration::from_secs(300), "no round ends");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A learner that had a running round continues like one that had none.
#[test]
fn defect_13_a_restored_learner_keeps_nothing_of_a_round_that_was_under_way() {
    let settings = OnlineSettings {
        warm_up: 40,
        every: 40,
        replay_capacity: 500,
        is_threaded: true,
    };
    let (mut busy, twin) = learner(settings, false, 4000);
    offer(&mut busy, 0..39);
    let state = busy.snapshot();
    offer(&mut busy, 39..40);
    std::thread::sleep(Duration::from_millis(20));
    busy.restore(&state, None).expect("its own");
    assert_eq!((busy.counts().rounds, busy.counts().transitions), (0, 39));
    // Long enough for the old round to end, if it were allowed to.
    std::thread::sleep(Duration::from_millis(50));
    offer(&mut busy, 1000..1001);
    rounds_done(&busy, 1);

    let (mut calm, _) = learner(
        OnlineSettings {
            is_threaded: false,
            ..settings
        },
        false,
        4000,
    );
    calm.restore(&state, None).expect("of the same settings");
    offer(&mut calm, 1000..1001);
    assert_eq!(calm.counts(), busy.counts());
    let [mut found, mut expected] = [twin.clone(), twin];
    assert!(busy.take_update(&mut found) && calm.take_update(&mut expected));
    assert_eq!(
        found.weights, expected.weights,
        "other weights than those of the restored state"
    );
    assert_eq!(busy.counts().rounds, 1, "and no second round");
}

#[test]
fn defect_13_a_learner_takes_its_own_snapshot_whatever_its_settings() {
    for (settings, is_trained) in [
        (
            OnlineSettings {
                warm_up: 0,
                every: 5,
                replay_capacity: 100,
                is_threaded: false,
            },
            false,
        ),
        (
            OnlineSettings {
                warm_up: 0,
                every: 5,
                replay_capacity: 100,
                is_threaded: false,
            },
            true,
        ),
        (
            OnlineSettings {
                warm_up: 30,
                every: 5,
                replay_capacity: 30,
                is_threaded: false,
            },
            false,
        ),
        (
            OnlineSettings {
                warm_up: 20,
                every: 500,
                replay_capacity: 30,
                is_threaded: false,
            },
            true,
        ),
    ] {
        let (mut learner, twin) = learner(settings, is_trained, 2);
        for number in 0..60 {
            let state = learner.snapshot();
            learner
                .restore(&state, is_trained.then(|| twin.clone()))
                .unwrap_or_else(|error| panic!("{settings:?} after {number}: {error}"));
            assert_eq!(learner.snapshot(), state, "{settings:?} after {number}");
            offer(&mut learner, number..number + 1);
        }
    }
}

/// One neuron of each kind, alone.
fn simulation(kinds: &[NeuronOptions], idle_update: IdleUpdate) -> Simulation {
    let mut neurons = Neurons::default();
    for kind in kinds {
        neurons.add(1, kind).expect("a kind");
    }
    let synapses = SynapseList::new(neurons.len(), &[]).expect("none");
    let network = Network::new(
        &neurons,
        Box::new(synapses),
        NetworkOptions {
            idle_update,
            ..NetworkOptions::default()
        },
    )
    .expect("a network");
    Simulation::new(Arc::new(network), &cpu(), &SimulationOptions::default()).expect("it compiles")
}

#[test]
fn defect_19_a_state_of_a_neuron_that_no_run_reaches_is_refused_by_neuron_and_value() {
    let kind = NeuronOptions {
        threshold: 10.0,
        ..NeuronOptions::default()
    };
    let kinds = [
        NeuronOptions {
            charge_accumulation: true,
            ..kind.clone()
        },
        NeuronOptions {
            charge_accumulation: false,
            resting_potential: 2.0,
            ..kind.clone()
        },
        NeuronOptions {
            charge_accumulation: true,
            refractory: 3,
            snooze: 4,
            consecutive_fire_limit: 2,
            ..kind.clone()
        },
        NeuronOptions {
            charge_accumulation: true,
            leak: 0.5,
            threshold_limit: Some(20.0),
            ..kind
        },
    ];
    for idle_update in [IdleUpdate::CatchUp, IdleUpdate::Freeze] {
        let mut simulation = simulation(&kinds, idle_update);
        for burst in 0..30u32 {
            let inputs: Vec<(u32, f32)> = (0..4)
                .map(|neuron| {
                    (
                        neuron,
                        [3.0, 12.0, 50.0, -7.0][((burst + neuron) % 4) as usize],
                    )
                })
                .collect();
            simulation.inject(&inputs).expect("within bounds");
            simulation.run(1).expect("it runs");
            // Any state that it reaches can be restored.
            let state = simulation.snapshot().expect("reads");
            simulation
                .restore(&state)
                .unwrap_or_else(|error| panic!("burst {burst}: {error}"));
        }
        let whole = simulation.snapshot().expect("reads");
        let one = f64::from(simulation.network().fraction_bits_of(0)).exp2() as i32;
        let pause = if idle_update == IdleUpdate::CatchUp {
            30 + 1
        } else {
            0
        };
        for (name, neuron, value, shown) in [
            // It would have fired.
            ("potential", 0, (10 * one) as u32, Some("10")),
            ("potential", 0, (1000 * one) as u32, Some("1000")),
            ("potential", 0, i32::MIN as u32, None),
            ("potential", 0, (1 << 30) as u32, None),
            ("potential", 0, f32::NAN.to_bits(), None),
            ("potential", 0, f32::INFINITY.to_bits(), None),
            // It has none.
            ("potential", 1, 3 * one as u32, Some("3")),
            ("last", 2, 31, Some("31")),
            ("ready", 2, pause + 8, None),
            ("consecutive", 2, 3, Some("3")),
            ("consecutive", 3, 31, Some("31")),
        ] {
            let mut words = whole.u32(name, 4).expect("four neurons").to_vec();
            words[neuron] = value;
            let mut hostile = whole.clone();
            hostile.insert(name, Array::U32(words));
            let error = simulation
                .restore(&hostile)
                .err()
                .unwrap_or_else(|| panic!("{idle_update:?}: {name} {value} of {neuron} is taken"));
            let told = format!("neuron {neuron} has {name} {}", shown.unwrap_or_default());
            assert!(
                error.kind() == ErrorKind::Data && error.to_string().contains(&told),
                "{error}"
            );
            assert_eq!(
                simulation.snapshot().expect("reads"),
                whole,
                "nothing changed"
            );
        }
        // Above its limit it does not fire, and the leak brings it into its window.
        let mut words = whole.u32("potential", 4).expect("four neurons").to_vec();
        words[3] = (15 * one) as u32;
        let mut possible = whole.clone();
        possible.insert("potential", Array::U32(words));
        simulation.restore(&possible).expect("a leak leads there");
    }
}

/// The first snapshot is written before the first tick, and early ones follow: a resumed run
/// repeats no more ticks than were saved.
#[test]
fn a_run_is_saved_before_its_first_tick_and_early() {
    #[derive(Default)]
    struct Ticks(Vec<u64>, u64);
    impl Sink for Ticks {
        fn tick(&mut self, _: &tectum_control::closed_loop::TickRecord<'_>) -> tectum::Result<()> {
            self.1 += 1;
            Ok(())
        }

        fn snapshot(&mut self, _: Snapshot) -> tectum::Result<()> {
            self.0.push(self.1);
            Ok(())
        }
    }
    let text = |every: u64| {
        format!(
            "[body]\nname = \"rig\"\n[brain]\nname = \"lqr\"\n[loop]\nseconds = 4\nclock = \"sim\"\nsnapshot_every = {every}\n"
        )
    };
    for (every, expected) in [
        (40, &[0, 1, 2, 4, 8, 16, 32, 40, 80, 100][..]),
        (250, &[0, 1, 2, 4, 8, 16, 32, 64, 100]),
        (0, &[100]),
        (1000, &[0, 1, 2, 4, 8, 16, 32, 64, 100]),
    ] {
        let scenario = Scenario::parse(&text(every), "test", "test").expect("correct");
        let plant = build_body(&scenario).expect("known");
        let brain = build_brain(
            &scenario,
            plant.as_ref(),
            &cpu(),
            &mut tectum::WorkProgress::ignore,
        )
        .expect("known");
        let mut closed_loop = ClosedLoop::new(plant, brain, &scenario.run, &cpu()).expect("cpu");
        let mut ticks = Ticks::default();
        closed_loop
            .run(&mut SimClock::new(), &mut ticks, &mut |_| {
                ControlFlow::Continue(())
            })
            .into_result()
            .expect("runs");
        assert_eq!(ticks.0, expected, "every {every}");
    }
}
