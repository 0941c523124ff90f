//! Bodies from equation files in the loop.

use std::ops::ControlFlow;
use std::path::PathBuf;

use tectum::Device;
use tectum_control::body::cart_pole::CartPole;
use tectum_control::body::{Body, Start};
use tectum_control::clock::SimClock;
use tectum_control::closed_loop::{ClosedLoop, Discard, End, Outcome};
use tectum_control::scenario::Scenario;
use tectum_control::scenario::build::{brain_recipe, build_body, build_loop};

fn plant(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tectum-equations/plants").join(name);
    path.canonicalize().expect("it ships").display().to_string()
}

fn scenario(name: &str, parameters: &str, brain: &str, seconds: u32) -> Scenario {
    let text =
        format!("[body]\nname = \"{}\"\n{parameters}\n[brain]\nname = \"{brain}\"\n[loop]\nseconds = {seconds}\nclock = \"sim\"\nseed = 3\n", plant(name));
    Scenario::parse(&text, "equations", "equations.toml").expect("valid")
}

fn built(scenario: &Scenario) -> ClosedLoop {
    let body = build_body(scenario).expect("the body");
    let recipe = brain_recipe(scenario, body.spec()).expect("the brain");
    build_loop(scenario, body, recipe, &Device::open("cpu").expect("the CPU"), &mut tectum::WorkProgress::ignore).expect("the loop")
}

fn run(scenario: &Scenario) -> Outcome {
    let outcome = built(scenario).run(&mut SimClock::new(), &mut Discard, &mut |_| ControlFlow::Continue(()));
    assert!(matches!(outcome.end, End::Completed), "{:?}", outcome.end);
    outcome
}

#[test]
fn plants_from_files_are_regulated_with_other_masses_and_lengths_too() {
    for (name, parameters) in [
        ("cart_pole.plant", ""),
        ("cart_pole.plant", "parameters = { pole = 0.4, half_length = 0.8, cart = 2 }"),
        ("double_pendulum.plant", ""),
        ("double_pendulum.plant", "parameters = { second_mass = 0.2, second_length = 0.4 }"),
        ("quadrotor.plant", ""),
        ("quadrotor.plant", "parameters = { mass = 0.7, arm = 0.2 }"),
    ] {
        let outcome = run(&scenario(name, parameters, "lqr", 20));
        let success = outcome.metrics.success_fraction();
        assert!(success > 0.85 && outcome.metrics.episodes == 1, "{name} {parameters}: {success}, {} episodes", outcome.metrics.episodes);
    }
}

#[test]
fn the_cart_pole_of_the_file_is_the_built_in_one() {
    let mut from_file = build_body(&scenario("cart_pole.plant", "", "lqr", 1)).expect("the body");
    let mut built_in = CartPole::new(Start::Random).expect("it starts at random");
    let state = [0.01, -0.02, 0.03, 0.04];
    from_file.set_state(&state).expect("four numbers");
    (&mut built_in as &mut dyn Body).set_state(&[0.01, -0.02, 0.03, 0.04, 0.0]).expect("five numbers");
    for tick in 0..100 {
        let action = if tick % 3 == 0 { -10.0 } else { 10.0 };
        let (first, second) = (from_file.step(&[action]), built_in.step(&[action]));
        if !first.terminated {
            assert_eq!(first.reward, second.reward);
        }
        assert_eq!(first.terminated, second.terminated || tick > 0 && second.reward == 0.0, "tick {tick}");
        let [first, second] = [from_file.state().expect("exact"), (&built_in as &dyn Body).state().expect("exact")];
        for (first, second) in first.iter().zip(&second) {
            assert!((first - second).abs() <= 1e-12 * second.abs().max(1.0), "tick {tick}: {first} {second}");
        }
    }
}

#[test]
fn a_run_with_noise_continues_exactly_from_its_snapshot() {
    let scenario = scenario("quadrotor.plant", "", "lqr", 4);
    let whole = run(&scenario);
    let mut first = built(&scenario);
    first.run(&mut SimClock::new(), &mut Discard, &mut |progress| if progress.tick == 77 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) });
    let snapshot = first.snapshot().expect("exact state");
    let mut second = built(&scenario);
    assert_eq!(second.restore(&snapshot).expect("of the same run"), 77);
    let rest = second.run(&mut SimClock::new(), &mut Discard, &mut |_| ControlFlow::Continue(()));
    assert_eq!(whole.metrics.total_reward.to_bits(), rest.metrics.total_reward.to_bits());
    // Another seed is another noise and another start.
    let mut other = scenario.clone();
    other.run.seed = 4;
    assert_ne!(run(&other).metrics.total_reward, whole.metrics.total_reward);
}

#[test]
fn mistakes_in_a_scenario_and_its_file_are_located() {
    let parse =
        |body: &str| Scenario::parse(&format!("[body]\n{body}\n[brain]\nname = \"lqr\"\n"), "mine", "mine.toml").map(drop).expect_err("refused").to_string();
    let name = plant("cart_pole.plant");
    let refused = parse(&format!("name = \"{name}\"\nparameters = {{ mass = 3 }}"));
    assert!(refused.starts_with("mine:3: unknown key \"mass\"; known: gravity, cart, pole, half_length"), "{refused}");
    let refused = parse(&format!("name = \"{name}\"\nparameters = {{ pole = 300 }}"));
    assert!(refused.starts_with("mine:3: pole is 300, needs a number from 0.001 to 10"), "{refused}");
    let refused = parse(&format!("name = \"{name}\"\nparameters = {{ pole = \"heavy\" }}"));
    assert!(refused.starts_with("mine:3") && refused.contains("pole is \"heavy\""), "{refused}");
    let refused = parse("name = \"absent.plant\"");
    assert!(refused.contains("absent.plant"), "{refused}");
}
