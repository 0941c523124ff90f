//! Guarantees of every body: exact resumption, seeded starts, rejection of invalid input.

use tectum_control::body::{BODIES, Body, Start, body};

fn make(name: &str) -> Box<dyn Body> {
    body(name, None).expect("a known body")
}

fn excite(body: &mut dyn Body, ticks: usize) -> Vec<f64> {
    let highs: Vec<f32> = body
        .spec()
        .action
        .iter()
        .map(|channel| channel.high)
        .collect();
    let mut trail = Vec::new();
    for tick in 0..ticks {
        let action: Vec<f32> = highs
            .iter()
            .map(|high| high * (0.7 * tick as f32).sin())
            .collect();
        let step = body.step(&action);
        trail.push(step.reward);
        trail.extend(body.state().expect("exact"));
    }
    trail
}

#[test]
fn a_restored_state_resumes_exactly() {
    for name in BODIES.map(|body| body.name) {
        let mut plant = make(name);
        plant.reset(7);
        excite(plant.as_mut(), 23);
        let snapshot = plant.state().expect("exact");
        let expected = excite(plant.as_mut(), 50);
        let mut resumed = make(name);
        resumed.set_state(&snapshot).expect("a state of its own");
        assert_eq!(excite(resumed.as_mut(), 50), expected, "{name}");
    }
}

#[test]
fn a_seed_gives_one_start_and_scatter_covers_the_range() {
    for descriptor in BODIES {
        let (name, mut task) = (descriptor.name, (descriptor.task)());
        let mut plant = make(name);
        plant.reset(3);
        let first = plant.state().expect("exact");
        plant.reset(4);
        assert_ne!(plant.state().expect("exact"), first, "{name}");
        plant.reset(3);
        assert_eq!(plant.state().expect("exact"), first, "{name}");
        let mut widest = 0.0f64;
        for seed in 0..200 {
            plant
                .require_randomized()
                .expect("random states")
                .randomize_state(seed);
            widest = widest.max(task.value(plant.as_ref()).abs());
        }
        assert!(
            widest > if name == "cart_pole" { 0.4 } else { 3.0 },
            "{name}: {widest}"
        );
    }
}

#[test]
fn hanging_starts_hang() {
    for descriptor in BODIES
        .into_iter()
        .filter(|body| body.starts.contains(&Start::Hanging))
    {
        let mut plant = body(descriptor.name, Some(Start::Hanging)).expect("hangs");
        for seed in 0..20 {
            plant.reset(seed);
            assert!(
                (descriptor.task)().value(plant.as_ref()).abs() > 3.0,
                "{}",
                descriptor.name
            );
        }
    }
}

#[test]
fn a_descriptor_lists_the_starts_that_its_body_has() {
    for descriptor in BODIES {
        for start in [Start::Hanging, Start::Random] {
            assert_eq!(
                body(descriptor.name, Some(start)).is_ok(),
                descriptor.starts.contains(&start),
                "{} {start:?}",
                descriptor.name
            );
        }
        assert_eq!(make(descriptor.name).spec().name, descriptor.name);
    }
}

#[test]
fn an_action_that_is_not_finite_becomes_the_safe_action() {
    for name in BODIES.map(|body| body.name) {
        let (mut refused, mut safe) = (make(name), make(name));
        let action = safe.spec().safe_action.clone();
        assert!(refused.step(&vec![f32::NAN; action.len()]).refused);
        assert!(!safe.step(&action).refused);
        assert_eq!(
            refused.state().expect("exact"),
            safe.state().expect("exact"),
            "{name}"
        );
    }
}

#[test]
fn mistakes_are_refused_by_name() {
    let cases = [
        (
            body("arm", None).err(),
            "body \"arm\" is unknown; known: rig, pendulum, cart_pole, acrobot, seeker",
        ),
        (
            body("cart_pole", Some(Start::Hanging)).err(),
            "cart_pole: start \"hanging\" is beyond its 12 degrees; known: random",
        ),
        (
            make("rig").set_state(&[0.0; 4]).err(),
            "rig: a state has 6 numbers, given 4",
        ),
        (
            make("pendulum").set_state(&[0.0, f64::NAN]).err(),
            "pendulum: state number 1 is NaN",
        ),
    ];
    for (error, expected) in cases {
        assert_eq!(error.expect(expected).to_string(), expected);
    }
}
