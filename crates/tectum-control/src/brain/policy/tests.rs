//! Chunks compared with a reference without queues, under both clocks, and the faults of
//! asynchronous inferences.

use std::sync::Arc;
use std::time::Duration;

use rten_onnx::onnx::{
    DataType, Dimension, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto,
    TensorShapeProto, TypeProto, TypeProtoTensor, ValueInfoProto,
};
use tectum::{Device, ErrorKind};

use super::spec::PolicySpec;
use super::{PolicyBrain, PolicyRecipe, Runner};
use crate::body::{ActionChannel, BodySpec, ObservationChannel};
use crate::brain::Brain;
use crate::clock::ClockKind;

/// Row i of the answer to x is SCALE x + i, so that an action shows its observation and its row.
const SCALE: f32 = 64.0;

/// A policy of chunks of `rows` rows for a body of one number.
fn brain(rows: usize, keys: &str, clock: ClockKind) -> PolicyBrain {
    Arc::new(recipe(rows, keys, clock))
        .on(&Device::open("cpu").expect("there"))
        .expect("it compiles")
}

fn recipe(rows: usize, keys: &str, clock: ClockKind) -> PolicyRecipe {
    let tensor = |name: &str, dims: &[i64], float_data: Vec<f32>| TensorProto {
        name: Some(name.to_owned()),
        dims: dims.to_vec(),
        data_type: Some(DataType::FLOAT),
        float_data,
        ..TensorProto::default()
    };
    let port = |name: &str, dims: &[usize]| {
        let dim = dims
            .iter()
            .map(|size| Dimension {
                dim_value: Some(*size as i64),
                ..Dimension::default()
            })
            .collect();
        let tensor = TypeProtoTensor {
            elem_type: Some(DataType::FLOAT),
            shape: Some(TensorShapeProto { dim }),
        };
        ValueInfoProto {
            name: Some(name.to_owned()),
            r#type: Some(TypeProto {
                tensor_type: Some(tensor),
                ..TypeProto::default()
            }),
        }
    };
    let node = |operator: &str, inputs: [&str; 2], output: &str| NodeProto {
        op_type: Some(operator.to_owned()),
        input: inputs.map(str::to_owned).to_vec(),
        output: vec![output.to_owned()],
        ..NodeProto::default()
    };
    let graph = GraphProto {
        node: vec![
            node("Mul", ["obs", "scale"], "scaled"),
            node("Add", ["scaled", "ramp"], "actions"),
        ],
        initializer: vec![
            tensor("scale", &[1], vec![SCALE]),
            tensor(
                "ramp",
                &[1, rows as i64, 1],
                (0..rows).map(|row| row as f32).collect(),
            ),
        ],
        input: vec![port("obs", &[1, 1])],
        output: vec![port("actions", &[1, rows, 1])],
        ..GraphProto::default()
    };
    let opset = OperatorSetIdProto {
        domain: None,
        version: Some(20),
    };
    let proto = ModelProto {
        ir_version: Some(9),
        graph: Some(graph),
        opset_import: vec![opset],
        ..ModelProto::default()
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("chunks.onnx");
    std::fs::write(&path, proto.write_buf().expect("a model")).expect("writable");
    std::fs::write(
        path.with_extension("toml"),
        format!("[action]\nchunk = {rows}\n{keys}"),
    )
    .expect("writable");
    let body = BodySpec {
        name: "line".to_owned(),
        dt_s: 0.005,
        observation: vec![ObservationChannel::new("x", "m", -1e6..=1e6)],
        action: vec![ActionChannel::new("u", "N", -1e6..=1e6)],
        safe_action: vec![0.0],
    };
    PolicyRecipe::new(&PolicySpec::of(path.to_string_lossy()), &body, clock).expect("it fits")
}

/// The action of a tick whose observation is its number; none if it has no row.
fn tick(brain: &mut PolicyBrain, number: usize) -> Option<f32> {
    let mut action = [f32::NAN];
    brain.tick(&[number as f32], &mut action).expect("a tick");
    assert_eq!(action[0].is_nan(), brain.unanswered_ticks() > 0);
    Some(action[0]).filter(|action| !action.is_nan())
}

fn ticks(brain: &mut PolicyBrain, count: usize) -> Vec<Option<f32>> {
    (0..count).map(|number| tick(brain, number)).collect()
}

type Shown = Option<(usize, usize)>;

/// The observation and the row of an action.
fn shown(action: f32) -> (usize, usize) {
    ((action / SCALE) as usize, (action % SCALE) as usize)
}

/// All chunks that arrived are kept, and the mean is computed as its definition has it.
fn reference(
    rows: usize,
    replan: usize,
    ensemble: Option<f64>,
    delay: usize,
    count: usize,
) -> Vec<Option<f32>> {
    let mut chunks: Vec<(usize, usize)> = Vec::new();
    let mut flights: Vec<(usize, usize)> = Vec::new();
    let (mut used, mut next) = (0, 0);
    let mut actions = Vec::new();
    for tick in 0..count {
        for _ in 0..2 {
            chunks.extend(flights.extract_if(.., |(_, observation)| tick - *observation >= delay));
            if flights.is_empty() && used >= next {
                flights.push((used, tick));
                next = used + replan;
            }
        }
        let predictions: Vec<f64> = chunks
            .iter()
            .filter(|(start, _)| used < start + rows)
            .map(|(start, observation)| {
                f64::from(SCALE) * *observation as f64 + (used - start) as f64
            })
            .collect();
        let weights = |m: f64| (0..predictions.len()).map(move |age| (-m * age as f64).exp());
        let action = match ensemble {
            None => predictions.last().copied(),
            Some(_) if predictions.is_empty() => None,
            Some(m) => Some(
                predictions
                    .iter()
                    .zip(weights(m))
                    .map(|(action, weight)| action * weight)
                    .sum::<f64>()
                    / weights(m).sum::<f64>(),
            ),
        };
        used += usize::from(action.is_some());
        actions.push(action.map(|action| action as f32));
    }
    actions
}

#[test]
fn chunks_are_used_as_by_a_reference_that_keeps_all_of_them() {
    for rows in 2..9 {
        for replan in 1..=rows {
            for ensemble in [None, Some(0.01), Some(0.0), Some(-0.7)]
                .into_iter()
                .filter(|ensemble| ensemble.is_none() || replan < rows)
            {
                let mut keys = format!("replan_steps = {replan}\n");
                keys += &ensemble.map_or(String::new(), |m| {
                    format!("temporal_ensemble_coeff = {m}\n")
                });
                assert_eq!(
                    ticks(&mut brain(rows, &keys, ClockKind::Sim), 40),
                    reference(rows, replan, ensemble, 0, 40),
                    "{rows} rows, {keys}"
                );
                for delay in 0..rows {
                    let keys = format!("{keys}asynchronous = true\ninference_delay = {delay}\n");
                    let wanted = reference(rows, replan, ensemble, delay, 60);
                    assert_eq!(
                        ticks(&mut brain(rows, &keys, ClockKind::Sim), 60),
                        wanted,
                        "{rows} rows, {keys}"
                    );
                }
            }
        }
    }
}

/// Written by hand: (observation, row), or none for a tick that has none.
#[test]
fn passed_rows_are_skipped_and_tails_used_before_an_action_is_held() {
    let cases: [(usize, &str, &[Shown]); 4] = [
        (
            3,
            "",
            &[
                Some((0, 0)),
                Some((0, 1)),
                Some((0, 2)),
                Some((3, 0)),
                Some((3, 1)),
            ],
        ),
        (
            4,
            "asynchronous = true\ninference_delay = 1",
            &[
                None,
                Some((0, 0)),
                Some((0, 1)),
                Some((0, 2)),
                Some((3, 1)),
                Some((3, 2)),
                Some((5, 1)),
            ],
        ),
        (
            2,
            "asynchronous = true\ninference_delay = 1\nreplan_steps = 2",
            &[
                None,
                Some((0, 0)),
                Some((0, 1)),
                None,
                Some((3, 0)),
                Some((3, 1)),
                None,
            ],
        ),
        (
            3,
            "replan_steps = 1",
            &[Some((0, 0)), Some((1, 0)), Some((2, 0))],
        ),
    ];
    for (rows, keys, wanted) in cases {
        let actions = ticks(&mut brain(rows, keys, ClockKind::Sim), wanted.len());
        assert_eq!(
            actions
                .into_iter()
                .map(|action| action.map(shown))
                .collect::<Vec<_>>(),
            wanted,
            "{rows} rows, {keys}"
        );
    }
    // ACT's mean of three predictions, the oldest first.
    let action = ticks(
        &mut brain(3, "temporal_ensemble_coeff = 0.5", ClockKind::Sim),
        3,
    )[2]
    .expect("a row");
    let (e, predictions) = (f64::exp(-0.5), [2.0, 65.0, 128.0]);
    let mean = (predictions[0] + e * predictions[1] + e * e * predictions[2]) / (1.0 + e + e * e);
    assert!(
        (f64::from(action) - mean).abs() < 1e-5,
        "{action}, {mean} expected"
    );
}

#[test]
fn a_run_after_a_snapshot_is_the_same_also_while_an_answer_is_awaited() {
    for keys in [
        "asynchronous = true\ninference_delay = 3\ntemporal_ensemble_coeff = 0.1\nreplan_steps = 2",
        "asynchronous = true\ninference_delay = 5",
    ] {
        let wanted = ticks(&mut brain(6, keys, ClockKind::Sim), 40);
        let mut first = brain(6, keys, ClockKind::Sim);
        for at in 0..30 {
            let snapshot = first.snapshot().expect("a state");
            let mut other = brain(6, keys, ClockKind::Sim);
            other.tick(&[1e3], &mut [0.0]).expect("a tick");
            other.restore(&snapshot).expect("of the same policy");
            assert_eq!(
                (at..40)
                    .map(|number| tick(&mut other, number))
                    .collect::<Vec<_>>(),
                wanted[at..],
                "after {at} ticks, {keys}"
            );
            tick(&mut first, at);
        }
    }
}

#[test]
fn an_episode_begins_without_the_answer_that_the_last_one_awaited() {
    let mut brain = brain(
        4,
        "asynchronous = true\ninference_delay = 2",
        ClockKind::Sim,
    );
    let wanted = ticks(&mut brain, 20);
    for end in 1..6 {
        brain.episode_ended();
        assert_eq!(ticks(&mut brain, 20), wanted);
        brain.episode_ended();
        ticks(&mut brain, end);
    }
    assert_eq!(
        brain.run_notes()[0],
        "policy: chunks were used up to 2 ticks after their observation"
    );
}

/// In real time a row is that of the actions used since its observation, however long an answer
/// takes; ticks do not wait.
#[test]
fn in_real_time_answers_are_used_when_they_are_there() {
    let mut brain = brain(50, "asynchronous = true\nreplan_steps = 7", ClockKind::Real);
    for _episode in 0..3 {
        let (mut used, mut answers) = (Vec::new(), 0);
        for number in 0..400 {
            used.push(answers);
            if let Some((observation, row)) = tick(&mut brain, number).map(shown) {
                assert_eq!(
                    row,
                    answers - used[observation],
                    "tick {number}, observation {observation}"
                );
                answers += 1;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        assert!(answers > 200, "{answers} of 400 ticks had a row");
        brain.episode_ended();
    }
    let Runner::Thread(worker) = &brain.runner else {
        panic!("inferences run on a thread")
    };
    let shared = Arc::downgrade(&worker.shared);
    drop(brain);
    assert!(shared.upgrade().is_none(), "the worker ends with its brain");
}

/// A snapshot in flight under a real clock: the other brain starts the inference again.
#[test]
fn in_real_time_an_awaited_answer_is_asked_for_again_after_a_snapshot() {
    let keys = "asynchronous = true\nreplan_steps = 7";
    let (mut first, mut other) = (
        brain(50, keys, ClockKind::Real),
        brain(50, keys, ClockKind::Real),
    );
    // Of a small network, the answer may be there in the same tick.
    let row = usize::from(tick(&mut first, 5).is_some());
    other
        .restore(&first.snapshot().expect("a state"))
        .expect("of the same policy");
    for brain in [&mut first, &mut other] {
        let action = (0..1000).find_map(|_| {
            std::thread::sleep(Duration::from_millis(1));
            tick(brain, 9)
        });
        assert_eq!(action.map(shown), Some((5, row)));
    }
}

#[test]
fn errors_of_the_worker_are_errors_of_a_tick_and_the_next_one_starts_again() {
    let mut brain = brain(4, "asynchronous = true", ClockKind::Real);
    let Runner::Thread(worker) = &brain.runner else {
        panic!("inferences run on a thread")
    };
    let shared = worker.shared.clone();
    let mut broken = recipe(4, "asynchronous = true", ClockKind::Real);
    broken.binding.inputs[0].name = "other".to_owned();
    let works = std::mem::replace(
        &mut shared.inference().expect("idle").recipe,
        Arc::new(broken),
    );
    let outcome = |brain: &mut PolicyBrain| {
        std::thread::sleep(Duration::from_millis(1));
        let mut action = [f32::NAN];
        brain.tick(&[1.0], &mut action).map(|_| action[0])
    };
    let error = (0..1000)
        .find_map(|_| outcome(&mut brain).err())
        .expect("an error");
    assert!(error.to_string().contains("no input other"), "{error}");
    let mut set = Some(works);
    let action = (0..1000).find_map(|_| {
        if let Some(mut inference) = shared.inference.try_lock().ok().filter(|_| set.is_some()) {
            inference.recipe = set.take().expect("once");
        }
        outcome(&mut brain).ok().filter(|action| !action.is_nan())
    });
    assert_eq!(action, Some(SCALE));
    // A panic ends the worker; the loop then rebuilds the brain.
    let poison = shared.clone();
    std::thread::spawn(move || {
        let _inference = poison.inference();
        panic!("while the lock is held");
    })
    .join()
    .expect_err("panics");
    let error = (0..1000)
        .find_map(|_| outcome(&mut brain).err())
        .expect("an error");
    assert_eq!(error.kind(), ErrorKind::DeviceLost, "{error}");
}
