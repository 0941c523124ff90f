//! Every body with every compatible brain writes the same set of files.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tectum::Device;
use tectum::snapshot::Snapshot;
use tectum_control::clock::SimClock;
use tectum_control::closed_loop::ClosedLoop;
use tectum_control::recording::Trace;
use tectum_control::run_folder::{
    RECEIPT_FILE, RunFolder, RunSummary, SCENARIO_FILE, SNAPSHOT_FILE, SUMMARY_FILE, TRACE_FILE,
};
use tectum_control::scenario::Scenario;
use tectum_control::scenario::build::{
    brain_recipe, build_body, build_brain, build_loop, build_task,
};

/// Body, then brain with its settings; a brain has one row for each compatible body.
const PAIRS: [(&str, &str); 9] = [
    ("rig", "name = \"zero\""),
    ("pendulum", "name = \"zero\""),
    ("cart_pole", "name = \"zero\""),
    ("rig", "name = \"lqr\""),
    ("pendulum", "name = \"lqr\""),
    ("cart_pole", "name = \"lqr\""),
    ("rig", QUICK_MPPI),
    ("pendulum", QUICK_MPPI),
    ("cart_pole", QUICK_MPPI),
];

/// MPPI with a twin with too little training to balance, but enough to run.
const QUICK_MPPI: &str =
    "name = \"mppi\"\nsamples = 64\n[brain.twin]\ntransitions = 400\nsteps = 20";

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tectum-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn run(body: &str, brain: &str, runs: &Path) -> PathBuf {
    let text = format!(
        "[body]\nname = {body:?}\n[brain]\n{brain}\n[loop]\nseconds = 2\nclock = \"sim\"\nsnapshot_every = 7\n"
    );
    let scenario = Scenario::parse(&text, "test", "test").expect("correct");
    let cpu = Device::open("cpu").expect("always there");
    let plant = build_body(&scenario).expect("known");
    let brain = build_brain(
        &scenario,
        plant.as_ref(),
        &cpu,
        &mut tectum::WorkProgress::ignore,
    )
    .expect("known");
    let mut closed_loop = ClosedLoop::new(plant, brain, &scenario.run, &cpu).expect("cpu");
    closed_loop.set_task(build_task(&scenario).expect("known"));
    let mut folder = RunFolder::create(runs, &scenario, &mut closed_loop).expect("writable");
    let outcome = closed_loop.run(&mut SimClock::new(), &mut folder, &mut |_| {
        ControlFlow::Continue(())
    });
    let summary = RunSummary::new(&scenario, &outcome, None, 0, folder.complete_path());
    folder.write(&outcome, &summary).expect("writable");
    folder.complete().expect("its own number")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("there");
    let mut names = entries
        .map(|entry| {
            entry
                .expect("readable")
                .file_name()
                .into_string()
                .expect("plain")
        })
        .collect::<Vec<_>>();
    names.sort();
    names
}

fn keys(path: &Path) -> Vec<String> {
    let text = std::fs::read(path).expect("there");
    let value: Value = serde_json::from_slice(&text).expect("JSON");
    value
        .as_object()
        .expect("an object")
        .keys()
        .cloned()
        .collect()
}

#[test]
fn every_pair_leaves_the_same_folder_receipt_and_snapshot_layout() {
    let scratch = Scratch::new("pairs");
    let mut layouts = Vec::new();
    for (number, (body, brain)) in PAIRS.iter().enumerate() {
        let folder = run(body, brain, &scratch.0);
        assert_eq!(
            folder,
            scratch.0.join((number + 1).to_string()),
            "{body} {brain}"
        );
        assert_eq!(
            names(&folder),
            [
                RECEIPT_FILE,
                SCENARIO_FILE,
                SNAPSHOT_FILE,
                SUMMARY_FILE,
                TRACE_FILE
            ],
            "{body} {brain}"
        );
        // A task is judged by its falls, or by the share and the time of success.
        let judged = if *body == "cart_pole" {
            &["falls"][..]
        } else {
            &["time_to_upright_s", "upright_fraction"]
        };
        let (mut summary, before) = (
            keys(&folder.join(SUMMARY_FILE)),
            keys(&folder.join(SUMMARY_FILE)).len(),
        );
        summary.retain(|key| !judged.contains(&key.as_str()));
        assert_eq!(before - summary.len(), judged.len(), "{body} {brain}");
        layouts.push((keys(&folder.join(RECEIPT_FILE)), summary));
        assert_eq!(layouts.last(), layouts.first(), "{body} {brain}");

        let snapshot = Snapshot::load(&folder.join(SNAPSHOT_FILE)).expect("a snapshot");
        let common = snapshot
            .names()
            .filter(|name| !name.starts_with("brain."))
            .collect::<Vec<_>>();
        assert_eq!(
            common,
            [
                "body.state",
                "loop.counts",
                "loop.ended_episodes",
                "loop.episode_returns",
                "loop.held_action",
                "loop.held_safe",
                "loop.total_reward"
            ],
            "{body} {brain}"
        );

        let trace = Trace::read(&folder.join(TRACE_FILE)).expect("a recording");
        let summary: Value =
            serde_json::from_slice(&std::fs::read(folder.join(SUMMARY_FILE)).expect("there"))
                .expect("JSON");
        assert_eq!(
            summary["ticks"].as_u64(),
            Some(trace.ticks.len() as u64),
            "{body} {brain}"
        );
        assert_eq!(trace.messages, 3 * trace.ticks.len(), "{body} {brain}");
        if *body == "cart_pole" {
            // Each fall ends an episode; its return is the number of its periods.
            let ends: Vec<u64> = trace
                .ticks
                .iter()
                .filter(|tick| tick.terminated)
                .map(|tick| tick.tick + 1)
                .collect();
            let lengths: Vec<u64> = std::iter::once(&0)
                .chain(&ends)
                .zip(&ends)
                .map(|(begin, end)| end - begin)
                .collect();
            assert_eq!(
                summary["falls"].as_u64(),
                Some(ends.len() as u64),
                "{body} {brain}"
            );
            assert_eq!(
                (&summary["terminated_episodes"], &summary["ended_episodes"]),
                (&summary["falls"], &summary["falls"]),
                "{body} {brain}"
            );
            let found = ["min", "max"].map(|key| summary["episode_return"][key].as_f64());
            assert_eq!(
                found,
                [lengths.iter().min(), lengths.iter().max()]
                    .map(|length| length.map(|length| *length as f64)),
                "{body} {brain}"
            );
        } else {
            let upright = trace
                .ticks
                .iter()
                .filter(|tick| tick.measure.abs() < 10f64.to_radians())
                .count();
            let fraction = upright as f64 / trace.ticks.len() as f64;
            assert_eq!(
                summary["upright_fraction"].as_f64(),
                Some(fraction),
                "{body} {brain}"
            );
        }

        let scenario = Scenario::read(&folder.join(SCENARIO_FILE)).expect("reads back");
        assert_eq!(
            (scenario.name.as_str(), scenario.body.name.as_str()),
            ("test", *body)
        );
    }
}

#[test]
fn same_seed_same_trace_and_snapshot_byte_for_byte_on_the_simulated_clock() {
    let scratch = Scratch::new("bytes");
    for (body, brain) in PAIRS {
        let folders = [run(body, brain, &scratch.0), run(body, brain, &scratch.0)];
        for file in [TRACE_FILE, SNAPSHOT_FILE, SCENARIO_FILE] {
            let [a, b] = [0, 1].map(|i| std::fs::read(folders[i].join(file)).expect("there"));
            assert!(a == b, "{body} {brain}: {file} differs");
        }
    }
}

#[test]
fn a_folder_without_a_tick_leaves_nothing_and_numbers_are_never_given_twice() {
    let scratch = Scratch::new("numbers");
    let scenario = Scenario::parse(
        "[body]\nname = \"rig\"\n[brain]\nname = \"zero\"\n",
        "test",
        "test",
    )
    .expect("correct");
    let create = || {
        let cpu = Device::open("cpu").expect("always there");
        let body = build_body(&scenario).expect("known");
        let recipe = brain_recipe(&scenario, body.spec()).expect("known");
        let mut closed_loop = build_loop(
            &scenario,
            body,
            recipe,
            &cpu,
            &mut tectum::WorkProgress::ignore,
        )
        .expect("known");
        RunFolder::create(&scratch.0, &scenario, &mut closed_loop).expect("writable")
    };
    drop(create());
    assert!(!scratch.0.exists());
    std::fs::create_dir_all(scratch.0.join("7")).expect("writable");
    std::fs::create_dir_all(scratch.0.join("notes")).expect("writable");
    let folders = std::thread::scope(|scope| {
        let makers = (0..8).map(|_| scope.spawn(create)).collect::<Vec<_>>();
        makers
            .into_iter()
            .map(|maker| maker.join().expect("no panic"))
            .collect::<Vec<_>>()
    });
    let mut paths = folders
        .iter()
        .map(|folder| folder.complete_path().to_owned())
        .collect::<Vec<_>>();
    paths.sort();
    paths.dedup();
    assert_eq!(paths.len(), 8);
    drop(folders);
    assert_eq!(names(&scratch.0), ["7", "notes"]);
}
