//! The policies that ship, and contracts that do not fit.

use rten_onnx::onnx::{DataType, GraphProto, ModelProto, StringStringEntryProto};
use tectum::{Device, Sample};
use tectum_control::SAMPLES;
use tectum_control::body::{ActionChannel, Body, BodySpec, ObservationChannel, body};
use tectum_control::brain::Brain;
use tectum_control::brain::policy::spec::PolicySpec;
use tectum_control::brain::policy::{PolicyBrain, check};

use super::small_models::{graph, int64s, model, node, outputs, port};

/// Steps of an episode of CartPole-v1, each with a reward of 1.
const MAX_RETURN: f64 = 500.0;

/// A policy with its contract in a folder, which is deleted at the end.
struct Files {
    folder: tempfile::TempDir,
    model: String,
}

impl Files {
    fn of(sample: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let sample = Sample::find(&SAMPLES, sample).expect("built in");
        let path = folder.path().join("policy");
        sample.write(&path).expect("writable");
        let model = path.join(sample.files[0].0).to_string_lossy().into_owned();
        Self { folder, model }
    }

    fn brain(&self, body: &dyn Body) -> PolicyBrain {
        PolicyBrain::new(
            &PolicySpec::of(&self.model),
            body.spec(),
            &Device::open("cpu").expect("it is there"),
        )
        .expect("it fits")
    }

    /// What a contract is refused for.
    fn refusal(&self, contract: &str) -> String {
        let path = self.folder.path().join("broken.toml");
        std::fs::write(&path, contract).expect("writable");
        let error = check(
            self.model.as_ref(),
            Some(&path),
            body("cart_pole", None).expect("built in").spec(),
        )
        .expect_err(contract)
        .to_string();
        let origin = path.display().to_string();
        assert!(error.starts_with(&origin), "{error}");
        error[origin.len()..].to_owned()
    }
}

/// The return of an episode, at most 500.
fn episode(plant: &mut dyn Body, brain: &mut dyn Brain, seed: u64) -> f64 {
    let (mut observation, mut action) = (
        vec![0.0; plant.spec().observation.len()],
        plant.spec().safe_action.clone(),
    );
    plant.reset(seed);
    brain.episode_ended();
    let mut sum = 0.0;
    while sum < MAX_RETURN {
        plant.observe(&mut observation);
        brain.tick(&observation, &mut action).expect("a tick");
        let step = plant.step(&action);
        sum += step.reward;
        if step.ends_episode() {
            break;
        }
    }
    sum
}

#[test]
fn trained_policies_return_500_in_each_of_100_episodes() {
    for name in ["cart-pole-policy", "recurrent-policy"] {
        let mut plant = body("cart_pole", None).expect("built in");
        let mut brain = Files::of(name).brain(plant.as_ref());
        let returns: Vec<f64> = (0..100)
            .map(|seed| episode(plant.as_mut(), &mut brain, seed))
            .collect();
        assert!(
            returns.iter().all(|sum| *sum == MAX_RETURN),
            "{name}: {returns:?}"
        );
    }
}

/// Without its state, the recurrent policy sees no speeds.
#[test]
fn the_recurrent_policy_needs_its_state_and_a_snapshot_has_it() {
    let mut plant = body("cart_pole", None).expect("built in");
    let files = Files::of("recurrent-policy");
    let (mut brain, mut other) = (files.brain(plant.as_ref()), files.brain(plant.as_ref()));
    let (mut observation, mut action, mut forgetful) = ([0.0; 4], [0.0], [0.0]);
    plant.reset(3);
    let (mut differ, mut saved) = (0, None);
    for tick in 0..200 {
        plant.observe(&mut observation);
        other.episode_ended();
        other.tick(&observation, &mut forgetful).expect("a tick");
        brain.tick(&observation, &mut action).expect("a tick");
        differ += usize::from(action != forgetful);
        plant.step(&action);
        if tick == 100 {
            saved = Some((
                brain.snapshot().expect("a state"),
                plant.state().expect("exact"),
            ));
        }
    }
    assert!(
        differ > 20,
        "{differ} of 200 actions differ without the state"
    );
    let (snapshot, state) = saved.expect("saved");
    let end = plant.state().expect("exact");
    other.restore(&snapshot).expect("of the same policy");
    plant.set_state(&state).expect("finite");
    for _ in 101..200 {
        plant.observe(&mut observation);
        other.tick(&observation, &mut action).expect("a tick");
        plant.step(&action);
    }
    assert_eq!(
        plant.state().expect("exact"),
        end,
        "the run after a snapshot is the same"
    );
}

/// Each mistake has an error of its own, which names what does not fit.
#[test]
fn contracts_that_do_not_fit_are_refused_each_with_its_reason() {
    let (mlp, recurrent) = (Files::of("cart-pole-policy"), Files::of("recurrent-policy"));
    let all = "[[observation]]\nchannels = [\"position\", \"velocity\", \"angle\", \"speed\"]\n";
    let action = "[action]\nchannels = [\"force\"]\nchoices = [[-10], [10]]\n";
    let two = "[[observation]]\nchannels = [\"position\", \"angle\"]\n";
    let cases = [
        (
            &mlp,
            format!("{}{action}", all.replace("velocity", "velocit")),
            ": observation 1: the body cart_pole has no channel \"velocit\", perhaps \"velocity\"; it has position, velocity, angle, speed",
        ),
        (
            &mlp,
            format!("{two}{action}"),
            ": input observation [1, 4] has 4 numbers, its terms 2 = 2",
        ),
        (
            &mlp,
            format!("{all}history = 2\n{action}"),
            ": input observation [1, 4] has 4 numbers, its terms 8 = 8",
        ),
        (
            &mlp,
            format!("{all}{}", action.replace("force", "torque")),
            ": action: the body cart_pole has no channel \"torque\"; it has force",
        ),
        (
            &mlp,
            format!(
                "{all}{}",
                action.replace("\"force\"", "\"force\", \"force\"")
            ),
            ": action: channel force is named twice",
        ),
        (
            &mlp,
            format!("{all}{}", action.replace(", [10]", "")),
            ": action: 1 choices for output action_logits [1, 2] of 2 numbers",
        ),
        (
            &mlp,
            format!("{all}{}", action.replace("[10]", "[40]")),
            ": action: choice 2: 40 N is outside -10 to 10 of force",
        ),
        (
            &mlp,
            format!("{all}unit = \"kg\"\n{action}"),
            ": observation 1: position: m cannot be converted to kg",
        ),
        (
            &mlp,
            format!("{all}scale = [1, 2]\n{action}"),
            ": observation 1: scale has 2 values for 4 numbers",
        ),
        (
            &mlp,
            format!("period = 0.05\n{all}{action}"),
            ": period 0.05 s; the body cart_pole has one of 0.02 s",
        ),
        (
            &mlp,
            format!("output = \"actions\"\n{all}{action}"),
            ": output \"actions\" does not exist; there are action_logits",
        ),
        (
            &mlp,
            format!("input = \"obs\"\n{all}{action}"),
            ": input \"obs\" does not exist; there are observation",
        ),
        (
            &mlp,
            format!("{all}chanels = [\"position\"]\n{action}"),
            ":3: unknown key \"chanels\", perhaps \"channels\"; known: channels, as, source, value, network, input, function, quaternion, axes, unit, offset, clip, scale, apply, history, order, fill, fill_value, round",
        ),
        (
            &mlp,
            format!("{all}source = \"previous action\"\n{action}"),
            ": [observation[0]] needs one of the keys channels, source, value and network",
        ),
        (
            &recurrent,
            format!(
                "input = \"obs\"\noutput = \"action_logits\"\n{two}{action}[state]\nh_in = \"h_out\"\n"
            ),
            ": input c_in [1, 1, 64] is filled by no term and is no state",
        ),
        (
            &recurrent,
            format!("{two}{action}[state]\nh_in = \"h_out\"\nc_in = \"action_logits\"\n"),
            ": state: output action_logits [1, 2] float32 cannot become input c_in [1, 1, 64] float32: floats of one shape are needed",
        ),
        (
            &mlp,
            format!("{all}{action}chunk = 4\n"),
            ": action: chunk 4: output action_logits [1, 2] chooses one action, it has no rows",
        ),
        (
            &mlp,
            format!("{all}{action}replan_steps = 2\n"),
            ": action: replan_steps needs the key chunk: two or more rows of the output",
        ),
        (
            &mlp,
            format!("{all}{action}asynchronous = true\n"),
            ": action: asynchronous needs the key chunk: two or more rows of the output",
        ),
        (
            &mlp,
            format!("{all}{action}temporal_ensemble_coeff = 0.01\n"),
            ": action: temporal_ensemble_coeff needs the key chunk: two or more rows of the output",
        ),
        (
            &mlp,
            format!("{all}{action}chunk = 4\nreplan_steps = 5\n"),
            ": action: replan_steps 5: a chunk has 4 rows",
        ),
        (
            &mlp,
            format!("{all}{action}chunk = 4\nreplan_steps = 4\ntemporal_ensemble_coeff = 0.01\n"),
            ": action: temporal_ensemble_coeff has no effect: with replan_steps 4 of 4 rows, each tick has one prediction",
        ),
        (
            &mlp,
            format!("{all}{action}chunk = 4\ninference_delay = 1\n"),
            ": action: inference_delay has no effect: the inferences are not asynchronous",
        ),
        (
            &mlp,
            format!("{all}{action}chunk = 4\nasynchronous = true\ninference_delay = 4\n"),
            ": action: inference_delay 4: all 4 rows of a chunk are for ticks before its arrival",
        ),
        (
            &recurrent,
            format!("{two}{action}chunk = 4\nasynchronous = true\n"),
            ": action: asynchronous: the state h_in would depend on when answers arrive; run the network synchronously",
        ),
        (
            &recurrent,
            format!("{two}{action}[state]\nh_in = \"h_out\"\nc_in = \"c_ou\"\n"),
            ": state: output \"c_ou\" does not exist, perhaps \"c_out\"; there are action_logits, h_out, c_out",
        ),
    ];
    let mut seen = std::collections::BTreeSet::new();
    for (files, contract, message) in cases {
        let refusal = files.refusal(&contract);
        assert_eq!(refusal, message, "{contract}");
        assert!(seen.insert(refusal.clone()), "twice: {refusal}");
    }
}

/// Without a contract nothing is guessed silently.
#[test]
fn what_is_assumed_without_a_contract_is_reported() {
    let files = Files::of("cart-pole-policy");
    std::fs::remove_file(files.model.replace(".onnx", ".toml")).expect("there");
    let binding = check(
        files.model.as_ref(),
        None,
        body("cart_pole", None).expect("built in").spec(),
    )
    .expect("it fits");
    assert_eq!(
        binding.notes,
        [
            "the greatest of output action_logits chooses -10 or 10 N of force (assumed)",
            "input observation is position, velocity, angle, speed in this order and in the body's units (assumed)"
        ]
    );
    let error = check(
        files.model.as_ref(),
        None,
        body("pendulum", None).expect("built in").spec(),
    )
    .expect_err("of another size")
    .to_string();
    assert!(
        error.ends_with("for the 1 channels torque: the sizes differ"),
        "{error}"
    );
}

/// Two joints in degrees and a speed.
fn legs() -> BodySpec {
    let joint = |name: &str| {
        ObservationChannel::new(name, "deg", -180.0..=180.0).wrapping(std::f64::consts::PI / 180.0)
    };
    BodySpec {
        name: "legs".to_owned(),
        dt_s: 0.02,
        observation: vec![
            joint("joint_pos.a"),
            joint("joint_pos.b"),
            ObservationChannel::new("speed.x", "m/s", -10.0..=10.0),
        ],
        action: ["a", "b"]
            .map(|name| ActionChannel::new(name, "deg", -180.0..=180.0))
            .to_vec(),
        safe_action: vec![0.0; 2],
    }
}

/// A brain of a model that a test makes, in a folder that the test keeps.
fn made(folder: &tempfile::TempDir, proto: &ModelProto, contract: Option<&str>) -> PolicyBrain {
    made_on(&legs(), folder, proto, contract).expect("it fits")
}

/// The same on another body.
fn made_on(
    body: &BodySpec,
    folder: &tempfile::TempDir,
    proto: &ModelProto,
    contract: Option<&str>,
) -> tectum::Result<PolicyBrain> {
    let path = folder.path().join("made.onnx");
    std::fs::write(&path, proto.write_buf().expect("a model")).expect("writable");
    if let Some(contract) = contract {
        std::fs::write(path.with_extension("toml"), contract).expect("writable");
    }
    let spec = PolicySpec::of(path.to_string_lossy());
    PolicyBrain::new(&spec, body, &Device::open("cpu").expect("there"))
}

fn assert_near(action: [f32; 2], wanted: [f64; 2]) {
    let is_near = action
        .iter()
        .zip(wanted)
        .all(|(action, wanted)| (f64::from(*action) - wanted).abs() < 1e-4);
    assert!(is_near, "{action:?}, {wanted:?} expected");
}

/// The model gives its input back as four rows of two, so that every number of every term is an
/// action once.
#[test]
fn terms_and_actions_are_converted_as_the_contract_states() {
    let graph = GraphProto {
        node: vec![node("Reshape", "obs shape", "actions", Vec::new())],
        initializer: vec![int64s("shape", &[3], &[1, 4, 2])],
        input: vec![port("obs", DataType::FLOAT, &[1, 8])],
        output: vec![port("actions", DataType::FLOAT, &[1, 4, 2])],
        ..GraphProto::default()
    };
    let contract = r#"
        [[observation]]
        channels = ["joint_pos.b", "joint_pos.a"]
        unit = "rad"
        offset = [0.5, 0]
        clip = [-1, 1]
        scale = 2
        [[observation]]
        channels = ["joint_pos.a"]
        function = "sin"
        [[observation]]
        channels = ["speed.*"]
        history = 2
        [[observation]]
        source = "previous action"
        [[observation]]
        value = 7
        [action]
        channels = ["b", "a"]
        unit = "rad"
        scale = 0.5
        offset = [0.1, 0]
        chunk = 4"#;
    let folder = tempfile::tempdir().expect("a folder");
    let mut brain = made(&folder, &model(graph), Some(contract));
    let mut action = [0.0; 2];
    let mut tick = |a: f32, b: f32, speed: f32| {
        brain.tick(&[a, b, speed], &mut action).expect("a tick");
        action
    };
    // The body's order is a, b; the output's b, a.
    let degrees = |b: f64, a: f64| [(0.5 * a).to_degrees(), (0.5 * b + 0.1).to_degrees()];
    assert_near(tick(90.0, 0.0, 3.0), degrees(2.0 * -0.5, 2.0 * 1.0));
    assert_near(tick(0.0, 0.0, 4.0), degrees(1.0, 3.0));
    assert_near(tick(0.0, 0.0, 5.0), degrees(3.0, 0.0));
    assert_near(tick(0.0, 0.0, 6.0), degrees(0.0, 7.0));
    // The network runs again: the history moved at every tick, and the last row was (0, 7).
    assert_near(
        tick(30.0, 0.0, 8.0),
        degrees(2.0 * -0.5, 2.0 * 30f64.to_radians()),
    );
    assert_near(tick(0.0, 0.0, 0.0), degrees(0.5, 6.0));
    assert_near(tick(0.0, 0.0, 0.0), degrees(8.0, 0.0));
    assert_near(tick(0.0, 0.0, 0.0), degrees(7.0, 7.0));
    // What is no number stays none through bounds and choices, so that the loop gives its safe
    // action.
    assert!(tick(f32::NAN, 0.0, 0.0)[0].is_nan());
    let cart_pole = body("cart_pole", None).expect("built in");
    let mut force = [0.0];
    Files::of("cart-pole-policy")
        .brain(cart_pole.as_ref())
        .tick(&[f32::NAN; 4], &mut force)
        .expect("a tick");
    assert!(force[0].is_nan());
}

/// The model gives the joints' part of its input back; with the scales of the metadata that is
/// where the joints are.
#[test]
fn metadata_of_mjlab_is_a_contract() {
    let graph = GraphProto {
        node: vec![node("Slice", "obs start end axis", "actions", Vec::new())],
        initializer: vec![
            int64s("start", &[1], &[0]),
            int64s("end", &[1], &[2]),
            int64s("axis", &[1], &[1]),
        ],
        input: vec![port("obs", DataType::FLOAT, &[1, 6])],
        output: vec![port("actions", DataType::FLOAT, &[1, 2])],
        ..GraphProto::default()
    };
    let pairs = [
        ("joint_names", "b,a"),
        ("default_joint_pos", "10.000,20.000"),
        ("observation_names", "joint_pos,actions,speed"),
        ("observation_terms_scale", "2.000;2.000,1.000,0.500"),
        ("observation_terms_clip", "-inf;inf,-inf;inf,-1.000;1.000"),
        ("observation_terms_history_length", "0.000,0.000,2.000"),
        ("action_scale", "0.500"),
    ];
    let entry = |(key, value): (&str, &str)| StringStringEntryProto {
        key: Some(key.to_owned()),
        value: Some(value.to_owned()),
    };
    let proto = ModelProto {
        metadata_props: pairs.map(entry).to_vec(),
        ..model(graph)
    };
    let folder = tempfile::tempdir().expect("a folder");
    let mut brain = made(&folder, &proto, None);
    for expected in [
        "actions are added to default_joint_pos",
        "the metadata states no rate: the policy runs at the body's",
        "default_joint_pos, action_scale are rounded to 3 decimals in the metadata; the training's own files have all digits",
    ] {
        let notes = brain.notes();
        assert!(notes.iter().any(|note| note == expected), "{notes:?}");
    }
    let mut action = [0.0; 2];
    brain.tick(&[33.0, 44.0, 5.0], &mut action).expect("a tick");
    assert_near(action, [33.0, 44.0]);
}

/// A body of channels, observed and driven, with a name and a unit each; it acts 7 when it is safe.
fn body_of(observation: &[(&str, &str)], action: &[(&str, &str)]) -> BodySpec {
    BodySpec {
        name: "bench".to_owned(),
        dt_s: 0.02,
        observation: observation
            .iter()
            .map(|(name, unit)| ObservationChannel::new(*name, *unit, -1e3..=1e3))
            .collect(),
        action: action
            .iter()
            .map(|(name, unit)| ActionChannel::new(*name, *unit, -1e3..=1e3))
            .collect(),
        safe_action: vec![7.0; action.len()],
    }
}

/// A model of one operator with one input and one output of a row.
fn one_operator(operator: &str, input: &str, output: &str, len: i64) -> ModelProto {
    model(GraphProto {
        node: vec![node(operator, input, output, Vec::new())],
        input: vec![port(input, DataType::FLOAT, &[1, len])],
        output: vec![port(output, DataType::FLOAT, &[1, len])],
        ..GraphProto::default()
    })
}

/// A sine or cosine is that of the angle, in whatever unit it comes and whether it wraps or not.
#[test]
fn a_sine_is_that_of_an_angle_in_any_unit() {
    let proto = one_operator("Identity", "obs", "actions", 1);
    let (channel, half) = ("channels = [\"x\"]\nfunction = ", 0.5f64);
    let cases = [
        ("deg", format!("{channel}\"sin\""), 30.0, half),
        (
            "deg",
            format!("{channel}\"sin\"\nunit = \"rad\""),
            30.0,
            half,
        ),
        (
            "deg",
            format!("{channel}\"sin\"\nunit = \"deg\""),
            30.0,
            half,
        ),
        ("deg", format!("{channel}\"cos\""), 60.0, half),
        (
            "mrad",
            format!("{channel}\"sin\""),
            1e3 * 30f32.to_radians(),
            half,
        ),
        ("rad", format!("{channel}\"sin\""), 30f32.to_radians(), half),
        (
            "rad",
            format!("{channel}\"sin\"\nunit = \"deg\""),
            30f32.to_radians(),
            half,
        ),
        ("", format!("{channel}\"sin\""), 30f32.to_radians(), half),
        ("turns of it", format!("{channel}\"cos\""), 0.0, 1.0),
        (
            "m",
            "value = 30\nunit = \"deg\"\nfunction = \"sin\"".to_owned(),
            0.0,
            half,
        ),
        (
            "m",
            "value = 30\nfunction = \"sin\"".to_owned(),
            0.0,
            30f64.sin(),
        ),
    ];
    for (unit, term, x, expected) in cases {
        let folder = tempfile::tempdir().expect("a folder");
        let body = body_of(&[("x", unit)], &[("u", "N")]);
        let contract = format!("[[observation]]\n{term}\n");
        let mut brain =
            made_on(&body, &folder, &proto, Some(&contract)).unwrap_or_else(|e| panic!("{e}"));
        let is_assumed = brain
            .notes()
            .iter()
            .any(|note| note == "x is in radians (assumed)");
        let has_unit = !unit.is_empty() && !unit.starts_with("turns") || term.starts_with("value");
        assert_eq!(is_assumed, !has_unit, "{unit:?}, {contract}");
        let mut action = [f32::NAN];
        brain.tick(&[x], &mut action).expect("a tick");
        let near = (f64::from(action[0]) - expected).abs() < 1e-6;
        assert!(near, "{} for {x} {unit}, {contract}", action[0]);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let contract = format!("[[observation]]\n{channel}\"sin\"\n");
    let body = body_of(&[("x", "m")], &[("u", "N")]);
    let error = made_on(&body, &folder, &proto, Some(&contract)).err();
    let error = error.expect("a length has no sine").to_string();
    assert!(
        error.ends_with(": observation 1: x is in m; a sine or cosine needs an angle"),
        "{error}"
    );
}

/// The files and contracts in which a policy's ports are not an observation of floats and an action
/// alone. An action is that of ONNX Runtime.
#[test]
fn ports_of_policies_are_bound_as_their_contracts_state() {
    let obs = || port("obs", DataType::FLOAT, &[1, 1]);
    let actions = || port("actions", DataType::FLOAT, &[1, 1]);
    let stochastic = model(GraphProto {
        node: vec![
            node("Neg", "obs", "deterministic_actions", Vec::new()),
            node("RandomNormalLike", "deterministic_actions", "e", Vec::new()),
            node("Add", "deterministic_actions e", "actions", Vec::new()),
        ],
        input: vec![obs()],
        output: vec![
            port("deterministic_actions", DataType::FLOAT, &[1, 1]),
            actions(),
        ],
        ..GraphProto::default()
    });
    let twice = model(GraphProto {
        node: vec![node("Neg", "obs", "loc", Vec::new())],
        input: vec![obs()],
        output: outputs("loc loc"),
        ..GraphProto::default()
    });
    let task = |dims: &[i64]| {
        model(GraphProto {
            node: vec![
                node("Mul", "task ten", "tens", Vec::new()),
                node("CastLike", "tens obs", "t", Vec::new()),
                node("Add", "obs t", "actions", Vec::new()),
            ],
            initializer: vec![int64s("ten", &[], &[10])],
            input: vec![obs(), port("task", DataType::INT64, dims)],
            output: vec![actions()],
            ..GraphProto::default()
        })
    };
    let branch = |operator: &str| GraphProto {
        node: vec![node(operator, "obs", "z", Vec::new())],
        output: outputs("z"),
        ..GraphProto::default()
    };
    let choice = model(GraphProto {
        node: vec![
            node("Equal", "mode one", "is_on", Vec::new()),
            node(
                "If",
                "is_on",
                "actions",
                vec![
                    graph("then_branch", branch("Neg")),
                    graph("else_branch", branch("Identity")),
                ],
            ),
        ],
        initializer: vec![int64s("one", &[], &[1])],
        input: vec![obs(), port("mode", DataType::INT64, &[])],
        output: vec![actions()],
        ..GraphProto::default()
    });
    // The last of the axis of time, which the file leaves open, less the first.
    let history = {
        let mut open = port("obs", DataType::FLOAT, &[1, 1, 1]);
        let tensor = open
            .r#type
            .as_mut()
            .and_then(|kind| kind.tensor_type.as_mut());
        let shape = tensor
            .and_then(|tensor| tensor.shape.as_mut())
            .expect("a shape");
        for (dim, name) in shape.dim.iter_mut().zip(["batch", "time"]) {
            (dim.dim_value, dim.dim_param) = (None, Some(name.to_owned()));
        }
        model(GraphProto {
            node: vec![
                node("Gather", "obs last", "new", vec![axis()]),
                node("Gather", "obs first", "old", vec![axis()]),
                node("Sub", "new old", "actions", Vec::new()),
            ],
            initializer: vec![int64s("last", &[], &[3]), int64s("first", &[], &[0])],
            input: vec![open],
            output: vec![actions()],
            ..GraphProto::default()
        })
    };
    let lone = one_operator("Neg", "model_in", "model_out", 1);
    let x = "[[observation]]\nchannels = [\"x\"]\n";
    let of_task =
        |term: &str| format!("input = \"obs\"\n{x}[[observation]]\ninput = \"task\"\n{term}\n");
    let mode = |mode: u8| {
        format!("input = \"obs\"\n{x}[[observation]]\ninput = \"mode\"\nvalue = [{mode}]\n")
    };
    let cases: [(&str, &ModelProto, Option<String>, [f32; 2]); 12] = [
        ("lone, no contract", &lone, None, [-2.0, -5.0]),
        (
            "lone",
            &lone,
            Some(format!("input = \"model_in\"\noutput = \"model_out\"\n{x}")),
            [-2.0, -5.0],
        ),
        (
            "lone, without names",
            &lone,
            Some(x.to_owned()),
            [-2.0, -5.0],
        ),
        ("twice", &twice, None, [-2.0, -5.0]),
        (
            "stochastic",
            &stochastic,
            Some(format!("output = \"deterministic_actions\"\n{x}")),
            [-2.0, -5.0],
        ),
        ("stochastic, no contract", &stochastic, None, [-2.0, -5.0]),
        (
            "integer",
            &task(&[1]),
            Some(of_task("value = [1]")),
            [12.0, 15.0],
        ),
        (
            "integer without axes",
            &task(&[]),
            Some(of_task("value = 3")),
            [32.0, 35.0],
        ),
        (
            "steps",
            &task(&[1]),
            Some(of_task("source = \"step\"")),
            [2.0, 15.0],
        ),
        ("on", &choice, Some(mode(1)), [-2.0, -5.0]),
        ("off", &choice, Some(mode(0)), [2.0, 5.0]),
        (
            "history",
            &history,
            Some(format!("{x}history = 4\n")),
            [0.0, 3.0],
        ),
    ];
    let body = body_of(&[("x", "m")], &[("u", "N")]);
    for (name, proto, contract, expected) in cases {
        let folder = tempfile::tempdir().expect("a folder");
        let brain = made_on(&body, &folder, proto, contract.as_deref());
        let mut brain = brain.unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut action = [f32::NAN];
        for (x, expected) in [2.0, 5.0].into_iter().zip(expected) {
            brain.tick(&[x], &mut action).expect(name);
            assert_eq!(action[0], expected, "{name}: {x}");
        }
    }
    for (term, reason) in [
        (
            "value = [0.5]",
            "observation 2: input task is int64: 0.5 is none of its values",
        ),
        (
            "value = [3e9]",
            "observation 2: input task is int64: 3000000000 is none of its values",
        ),
        (
            "source = \"step\"\nscale = 0.5",
            "observation 2: input task is int64: the step becomes a fraction",
        ),
        (
            "channels = [\"x\"]",
            "observation 2: input task is int64: only `value`, the step and integer channels in its range are whole numbers; `round = true` rounds others",
        ),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let error = made_on(&body, &folder, &task(&[1]), Some(&of_task(term))).err();
        let error = error.expect(term).to_string();
        assert!(error.ends_with(reason), "{error}");
    }
}

fn axis() -> rten_onnx::onnx::AttributeProto {
    rten_onnx::onnx::AttributeProto {
        name: Some("axis".to_owned()),
        r#type: Some(rten_onnx::onnx::AttributeType::INT),
        i: Some(1),
        ..Default::default()
    }
}

/// Equation files have no dots in names: `joint_pos_hip` is the contract's `joint_pos.hip`.
#[test]
fn names_with_dots_are_those_of_equation_files_with_underscores() {
    let body = body_of(
        &[
            ("speed_x", "m/s"),
            ("joint_pos_l_hip", "rad"),
            ("speed_y", "m/s"),
        ],
        &[("l_hip", "rad")],
    );
    let proto = model(GraphProto {
        node: vec![node("ReduceSum", "obs axes", "actions", vec![])],
        initializer: vec![int64s("axes", &[1], &[1])],
        input: vec![port("obs", DataType::FLOAT, &[1, 3])],
        output: vec![port("actions", DataType::FLOAT, &[1, 1])],
        ..GraphProto::default()
    });
    let contract = "[[observation]]\nchannels = [\"joint_pos.l/hip\"]\nscale = 100\n[[observation]]\nchannels = [\"speed.*\"]\nscale = [1, 10]\n[action]\nchannels = [\"l.hip\"]\n";
    let folder = tempfile::tempdir().expect("a folder");
    let mut brain = made_on(&body, &folder, &proto, Some(contract)).expect("it fits");
    let mut action = [f32::NAN];
    brain.tick(&[1.0, 2.0, 3.0], &mut action).expect("a tick");
    assert_eq!(action, [231.0]);
    // Two channels that the name could be are none.
    let body = body_of(
        &[("a.b_c", "m"), ("a_b.c", "m"), ("d", "m")],
        &[("l_hip", "rad")],
    );
    let contract = "[[observation]]\nchannels = [\"a.b.c\", \"d\", \"d\"]\n";
    let error = made_on(&body, &folder, &proto, Some(contract)).err();
    assert!(
        error
            .expect("two fit")
            .to_string()
            .contains("has no channel \"a.b.c\""),
        "one of two was taken"
    );
}

/// A body has an actuator that the policy does not drive, and a joint that nothing drives.
#[test]
fn channels_that_a_policy_does_not_drive_keep_the_safe_action() {
    let body = body_of(
        &[
            ("joint_pos.a", "rad"),
            ("joint_pos.free", "rad"),
            ("joint_pos.b", "rad"),
        ],
        &[("a", "rad"), ("gripper", "m"), ("b", "rad")],
    );
    let proto = one_operator("Identity", "obs", "actions", 2);
    let terms = "[[observation]]\nchannels = [\"joint_pos.b\", \"joint_pos.a\"]\n";
    let rule = "[action]\nchannels = [\"b\", \"a\"]\n";
    let folder = tempfile::tempdir().expect("a folder");
    let refusal = |contract: &str| {
        let error = made_on(&body, &folder, &proto, Some(contract)).err();
        error.expect(contract).to_string()
    };
    assert!(
        refusal(&format!("{terms}{rule}")).ends_with(
            ": action: channel gripper of the body bench is not driven; `passive` lists the channels that keep the safe action"
        )
    );
    assert!(
        refusal(&format!("{terms}{rule}passive = [\"a\", \"gripper\"]\n"))
            .ends_with(": action: channel a is named twice")
    );
    assert!(
        refusal(&format!("{terms}{rule}passive = [\"griper\"]\n"))
            .contains("has no channel \"griper\", perhaps \"gripper\"")
    );
    let passive = "passive = [\"gripper\"]\n";
    for (rule, expected) in [
        (format!("{rule}{passive}"), [1.0, 7.0, 2.0]),
        // Without names, the output drives the others in the body's order.
        (format!("[action]\n{passive}"), [2.0, 7.0, 1.0]),
        (
            format!("{rule}{passive}choices = [[4, 3], [6, 5]]\n"),
            [3.0, 7.0, 4.0],
        ),
    ] {
        let mut brain =
            made_on(&body, &folder, &proto, Some(&format!("{terms}{rule}"))).expect("it fits");
        let mut action = [f32::NAN; 3];
        brain.tick(&[1.0, 9.0, 2.0], &mut action).expect("a tick");
        assert_eq!(action, expected, "{rule}");
        assert!(
            brain
                .notes()
                .iter()
                .any(|note| note == "passive channels gripper keep the body's safe action")
        );
    }
}

/// mjlab lists the names and positions of all joints, and scales of those that the policy drives.
#[test]
fn passive_joints_of_mjlab_are_observed_and_not_driven() {
    let body = body_of(
        &[
            ("joint_pos_a", "rad"),
            ("joint_pos_free", "rad"),
            ("joint_pos_b", "rad"),
        ],
        &[("a", "rad"), ("b", "rad")],
    );
    let pairs = [
        ("joint_names", "a,free,b"),
        ("default_joint_pos", "1.000,2.000,3.000"),
        ("joint_stiffness", "20.000,30.000"),
        ("observation_names", "joint_pos"),
        ("action_scale", "0.500,0.250"),
        ("command_names", "twist"),
    ];
    let entry = |(key, value): (&str, &str)| StringStringEntryProto {
        key: Some(key.to_owned()),
        value: Some(value.to_owned()),
    };
    let proto = ModelProto {
        metadata_props: pairs.map(entry).to_vec(),
        ..model(GraphProto {
            node: vec![node("Slice", "obs start end axis", "actions", Vec::new())],
            initializer: vec![
                int64s("start", &[1], &[1]),
                int64s("end", &[1], &[3]),
                int64s("axis", &[1], &[1]),
            ],
            input: vec![port("obs", DataType::FLOAT, &[1, 3])],
            output: vec![port("actions", DataType::FLOAT, &[1, 2])],
            ..GraphProto::default()
        })
    };
    let folder = tempfile::tempdir().expect("a folder");
    let mut brain = made_on(&body, &folder, &proto, None).expect("it fits");
    let notes = brain.notes();
    assert!(
        notes.iter().any(|note| note
            == "joints free are passive: the body bench has no action of their names (assumed)"),
        "{notes:?}"
    );
    let mut action = [f32::NAN; 2];
    // free is 8 above its default position, b 16 above.
    brain.tick(&[0.0, 10.0, 19.0], &mut action).expect("a tick");
    assert_eq!(action, [1.0 + 0.5 * 8.0, 3.0 + 0.25 * 16.0]);
}

/// Draws depend on the number of the inference, which a snapshot has: not on the tick of an
/// episode, in which all episodes would be alike.
#[test]
fn sampled_actions_continue_after_a_snapshot_and_differ_between_episodes() {
    let proto = model(GraphProto {
        node: vec![
            node("RandomNormalLike", "obs", "e", Vec::new()),
            node("Add", "obs e", "actions", Vec::new()),
        ],
        input: vec![port("obs", DataType::FLOAT, &[1, 1])],
        output: vec![port("actions", DataType::FLOAT, &[1, 1])],
        ..GraphProto::default()
    });
    let body = body_of(&[("x", "m")], &[("u", "N")]);
    let folder = tempfile::tempdir().expect("a folder");
    let made = || made_on(&body, &folder, &proto, None).expect("it fits");
    let ticks = |brain: &mut PolicyBrain| -> Vec<f32> {
        let mut action = [f32::NAN];
        (0..5)
            .map(|_| {
                brain.tick(&[0.0], &mut action).expect("a tick");
                action[0]
            })
            .collect()
    };
    let (mut first, mut other) = (made(), made());
    let all = ticks(&mut first);
    assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "{all:?}");
    let snapshot = first.snapshot().expect("a state");
    let rest = ticks(&mut first);
    assert_eq!(ticks(&mut other), all, "the same run");
    other.restore(&snapshot).expect("of the same policy");
    assert_eq!(ticks(&mut other), rest, "the run after a snapshot");
    let mut third = made();
    ticks(&mut third);
    third.episode_ended();
    assert_ne!(
        ticks(&mut third),
        all,
        "another episode draws other numbers"
    );
}
