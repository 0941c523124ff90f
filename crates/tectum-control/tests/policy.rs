//! The policies that ship, and contracts that do not fit.

use tectum::{Device, Sample};
use tectum_control::SAMPLES;
use tectum_control::body::{Body, body};
use tectum_control::brain::Brain;
use tectum_control::brain::policy::spec::PolicySpec;
use tectum_control::brain::policy::{PolicyBrain, check};

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
        PolicyBrain::new(&PolicySpec::of(&self.model), body.spec(), &Device::open("cpu").expect("it is there")).expect("it fits")
    }

    /// What a contract is refused for.
    fn refusal(&self, contract: &str) -> String {
        let path = self.folder.path().join("broken.toml");
        std::fs::write(&path, contract).expect("writable");
        let error = check(self.model.as_ref(), Some(&path), body("cart_pole", None).expect("built in").spec()).expect_err(contract).to_string();
        let origin = path.display().to_string();
        assert!(error.starts_with(&origin), "{error}");
        error[origin.len()..].to_owned()
    }
}

/// The return of an episode, at most 500.
fn episode(plant: &mut dyn Body, brain: &mut dyn Brain, seed: u64) -> f64 {
    let (mut observation, mut action) = (vec![0.0; plant.spec().observation.len()], plant.spec().safe_action.clone());
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
        let returns: Vec<f64> = (0..100).map(|seed| episode(plant.as_mut(), &mut brain, seed)).collect();
        assert!(returns.iter().all(|sum| *sum == MAX_RETURN), "{name}: {returns:?}");
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
            saved = Some((brain.snapshot().expect("a state"), plant.state().expect("exact")));
        }
    }
    assert!(differ > 20, "{differ} of 200 actions differ without the state");
    let (snapshot, state) = saved.expect("saved");
    let end = plant.state().expect("exact");
    other.restore(&snapshot).expect("of the same policy");
    plant.set_state(&state).expect("finite");
    for _ in 101..200 {
        plant.observe(&mut observation);
        other.tick(&observation, &mut action).expect("a tick");
        plant.step(&action);
    }
    assert_eq!(plant.state().expect("exact"), end, "the run after a snapshot is the same");
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
        (&mlp, format!("{two}{action}"), ": input observation [1, 4] has 4 numbers, its terms 2 = 2"),
        (&mlp, format!("{all}history = 2\n{action}"), ": input observation [1, 4] has 4 numbers, its terms 8 = 8"),
        (&mlp, format!("{all}{}", action.replace("force", "torque")), ": action: the body cart_pole has no channel \"torque\"; it has force"),
        (&mlp, format!("{all}{}", action.replace("\"force\"", "\"force\", \"force\"")), ": action: channel force is named twice"),
        (&mlp, format!("{all}{}", action.replace(", [10]", "")), ": action: 1 choices for output action_logits [1, 2] of 2 numbers"),
        (&mlp, format!("{all}{}", action.replace("[10]", "[40]")), ": action: choice 2: 40 N is outside -10 to 10 of force"),
        (&mlp, format!("{all}unit = \"kg\"\n{action}"), ": observation 1: position: m cannot be converted to kg"),
        (&mlp, format!("{all}scale = [1, 2]\n{action}"), ": observation 1: scale has 2 numbers for 4"),
        (&mlp, format!("period = 0.05\n{all}{action}"), ": period 0.05 s; the body cart_pole has one of 0.02 s"),
        (&mlp, format!("output = \"actions\"\n{all}{action}"), ": output \"actions\" does not exist; there are action_logits"),
        (&mlp, format!("input = \"obs\"\n{all}{action}"), ": input \"obs\" does not exist; there are observation"),
        (
            &mlp,
            format!("{all}chanels = [\"position\"]\n{action}"),
            ":3: unknown key \"chanels\", perhaps \"channels\"; known: channels, source, value, clip, input, function, unit, offset, scale, history",
        ),
        (&mlp, format!("{all}source = \"previous action\"\n{action}"), ": [observation[0]] needs one of the keys channels, source and value"),
        (
            &recurrent,
            format!("input = \"obs\"\noutput = \"action_logits\"\n{two}{action}[state]\nh_in = \"h_out\"\n"),
            ": input c_in [1, 1, 64] is filled by no term and is no state",
        ),
        (
            &recurrent,
            format!("{two}{action}[state]\nh_in = \"h_out\"\nc_in = \"action_logits\"\n"),
            ": state: output action_logits [1, 2] float32 cannot become input c_in [1, 1, 64] float32: floats of one shape are needed",
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
    let binding = check(files.model.as_ref(), None, body("cart_pole", None).expect("built in").spec()).expect("it fits");
    assert_eq!(
        binding.notes,
        [
            "the greatest of output action_logits chooses -10 or 10 N of force (assumed)",
            "input observation is position, velocity, angle, speed in this order and in the body's units (assumed)"
        ]
    );
    let error = check(files.model.as_ref(), None, body("pendulum", None).expect("built in").spec()).expect_err("of another size").to_string();
    assert!(error.ends_with("for the 1 channels torque: the sizes differ"), "{error}");
}
