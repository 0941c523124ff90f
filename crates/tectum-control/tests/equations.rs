//! Bodies from equation files in the loop.

use std::ops::ControlFlow;

use tectum::Device;
use tectum_control::body::batch::Batch;
use tectum_control::body::{BodySpec, body};
use tectum_control::clock::SimClock;
use tectum_control::closed_loop::{ClosedLoop, Discard, End, Outcome};
use tectum_control::scenario::Scenario;
use tectum_control::scenario::build::{brain_recipe, build_body, build_loop};

fn scenario(name: &str, parameters: &str, brain: &str, seconds: u32) -> Scenario {
    let text = format!(
        "[body]\nname = \"{}\"\n{parameters}\n[brain]\nname = \"{brain}\"\n[loop]\nseconds = {seconds}\nclock = \"sim\"\nseed = 3\n",
        name
    );
    Scenario::parse(&text, "equations.toml", "equations").expect("valid")
}

fn built(scenario: &Scenario) -> ClosedLoop {
    let body = build_body(scenario).expect("the body");
    let recipe = brain_recipe(scenario, body.spec()).expect("the brain");
    build_loop(
        scenario,
        body,
        recipe,
        &Device::open("cpu").expect("the CPU"),
        &mut tectum::WorkProgress::ignore,
    )
    .expect("the loop")
}

fn run(scenario: &Scenario) -> Outcome {
    let outcome = built(scenario).simulate();
    assert!(matches!(outcome.end, End::Completed), "{:?}", outcome.end);
    outcome
}

#[test]
fn plants_from_files_are_regulated_with_other_masses_and_lengths_too() {
    for (name, parameters) in [
        ("cart_pole.plant", ""),
        (
            "cart_pole.plant",
            "parameters = { pole = 0.4, half_length = 0.8, cart = 2 }",
        ),
        ("double_pendulum.plant", ""),
        (
            "double_pendulum.plant",
            "parameters = { second_mass = 0.2, second_length = 0.4 }",
        ),
        ("quadrotor.plant", ""),
        ("quadrotor.plant", "parameters = { mass = 0.7, arm = 0.2 }"),
        ("cart_servo.plant", ""),
    ] {
        let outcome = run(&scenario(name, parameters, "lqr", 20));
        let success = outcome.metrics.success_fraction();
        assert!(
            success > 0.85 && outcome.metrics.episodes == 1,
            "{name} {parameters}: {success}, {} episodes",
            outcome.metrics.episodes
        );
    }
}

/// A tank with a leak, held at a level by a pump that always runs.
const TANK: &str = "body tank\nperiod 1 s\nparameter leak = 0.01 [1/s] in 0.005 .. 0.02\n\
    state h: m start 0.5 in 0.1 .. 2 equilibrium 1\ninput pump: m/s in 0 .. 0.03 safe 0.01 equilibrium 0.01\n\
    d/dt h = pump - leak * h\nobserve level: m = h\n";

/// A file in a folder of this test.
fn written(name: &str, text: &str) -> String {
    let folder = std::env::temp_dir().join(format!("tectum-equations-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("writable");
    let path = folder.join(name);
    std::fs::write(&path, text).expect("writable");
    path.to_str().expect("UTF-8").to_owned()
}

#[test]
fn mpc_and_lqr_hold_a_plant_whose_input_is_not_zero_at_rest() {
    let tank = written(
        "tank.plant",
        &format!("{TANK}keep h - 1 [m] within 2 cm\nweigh h 1, pump 100\n"),
    );
    let [lqr, mpc] = ["lqr", "mpc"].map(|brain| run(&scenario(&tank, "", brain, 600)));
    let fractions = [&lqr, &mpc].map(|outcome| outcome.metrics.success_fraction());
    assert!(
        fractions.iter().all(|fraction| *fraction > 0.9),
        "{fractions:?}"
    );
    assert!(
        (lqr.metrics.total_reward - mpc.metrics.total_reward).abs() < 1e-6
            && mpc.metrics.fallbacks == 0
    );
    assert_eq!(
        mpc.task
            .map(|task| (task.measure.unit.to_string(), task.measure.bound)),
        Some(("cm".to_owned(), 2.0))
    );
    // A plant that leaks more than its controllers know stays below the level that they hold.
    let off = run(&scenario(&tank, "actual = { leak = 0.02 }", "lqr", 600));
    assert!(
        off.metrics.success_fraction() < 0.1,
        "{}",
        off.metrics.success_fraction()
    );
    let limited = tank_error(
        &TANK.replace(
            "pump: m/s in 0 .. 0.03 safe 0.01 equilibrium 0.01",
            "pump: m/s in 0 .. 0.03",
        ),
        "mpc",
    );
    assert_eq!(
        limited,
        "mpc: pump is 0 m/s at the equilibrium; it needs room within 0 to 0.03"
    );
}

/// The error of a brain on a tank with weights.
fn tank_error(text: &str, brain: &str) -> String {
    let tank = written("wrong_tank.plant", &format!("{text}weigh h 1, pump 100\n"));
    let scenario = scenario(&tank, "", brain, 10);
    let body = build_body(&scenario).expect("the body");
    brain_recipe(&scenario, body.spec())
        .map(drop)
        .expect_err("refused")
        .to_string()
}

#[test]
fn rig_and_seeker_have_their_parameters_in_the_scenario() {
    // A rig with a long pole, geared the other way and without delay is swung up and held by a
    // controller that knows it.
    let long = "parameters = { pole_length_m = 0.3, servo_gain = 4.5, delay_s = 0, travel_in = 8 }";
    let [known, unknown] = [long, "disturbances = { pole_length = 3 }"].map(|body| {
        run(&scenario("rig", body, "lqr", 60))
            .metrics
            .success_fraction()
    });
    assert!(known > 0.8 && unknown < 0.2, "{known} {unknown}");
    let seeker = |body: &str| {
        built(&scenario("seeker", body, "zero", 1))
            .body_spec()
            .clone()
    };
    let (own, fast) = (
        seeker(""),
        seeker("parameters = { max_speed = 2, action_period_s = 0.05 }"),
    );
    assert_eq!(
        (own.dt_s, own.action[0].high, fast.dt_s, fast.action[0].high),
        (0.1, 0.5, 0.05, 2.0)
    );
    // Written with the scenario, and refused out of range, for bodies without parameters, and for
    // kernels that do not know them.
    let changed = scenario("rig", long, "lqr", 1);
    assert_eq!(
        Scenario::parse(&changed.to_toml().expect("plain"), "again", "equations")
            .expect("reads back"),
        changed
    );
    let refused = |body: &str| {
        Scenario::parse(
            &format!("[body]\n{body}\n[brain]\nname = \"zero\"\n"),
            "mine",
            "mine",
        )
        .map(drop)
        .expect_err("refused")
        .to_string()
    };
    assert_eq!(
        refused("name = \"rig\"\nparameters = { pole_length_m = 50 }"),
        "mine:3: pole_length_m is 50, needs a number from 0.02 to 5"
    );
    let other = refused("name = \"cart_pole\"\nparameters = { pole = 1 }");
    assert!(other.contains("body cart_pole has no parameters here; body \"cart_pole.plant\", the same equations, has"), "{other}");
    let error = Batch::of(&changed.body, 4, &Device::open("cpu").expect("the CPU"))
        .map(drop)
        .expect_err("refused")
        .to_string();
    assert!(
        error.contains("many are stepped with its own parameters only"),
        "{error}"
    );
}

#[test]
fn an_equilibrium_that_is_none_is_reported() {
    let root = TANK
        .replace("leak * h", "leak * sqrt(h * 1 [m])")
        .replace("equilibrium 1\n", "\n");
    let error = tank_error(&root, "lqr");
    assert!(
        error.contains("the slope of h at the equilibrium is not finite"),
        "{error}"
    );
    let moving = written(
        "moving.plant",
        &format!(
            "{}weigh h 1, pump 100\n",
            TANK.replace("equilibrium 1\n", "equilibrium 0.2\n")
        ),
    );
    let outcome = run(&scenario(&moving, "", "lqr", 10));
    let notes: Vec<&str> = outcome
        .receipt
        .fallbacks
        .iter()
        .map(|fallback| fallback.reason.as_str())
        .collect();
    assert!(
        notes.iter().any(|note| note
            .contains("is not at rest at its equilibrium: h changes by 7.96e-3 m in a period")),
        "{notes:?}"
    );
}

#[test]
fn an_input_without_effect_on_an_unstable_plant_is_refused() {
    let falling = TANK
        .replace(
            "d/dt h = pump - leak * h",
            "d/dt h = leak * (h - 1 [m]) + 0 * pump",
        )
        .replace("equilibrium 0.01\n", "equilibrium 0\n");
    for brain in ["lqr", "mpc"] {
        let error = tank_error(
            &falling.replace("pump: m/s in 0 .. 0.03", "pump: m/s in -0.03 .. 0.03"),
            brain,
        );
        assert!(
            error.contains("no input stabilises h, which the weights count"),
            "{error}"
        );
    }
}

/// 0 hangs and 180° is upright, where the angle's range ends: it starts at 9° from there.
const UPRIGHT_IS_PI: &str = "body upright_is_pi\nperiod 20 ms\n\
    state theta: rad start 3.3 in 2 .. 4 equilibrium 180 deg\nstate omega: rad/s in -5 .. 5\n\
    input torque: 1/s^2 in -20 .. 20\nd/dt theta = omega\n\
    d/dt omega = -9.81 [1/s^2] * sin(theta) + torque\n\
    observe theta: rad = theta wraps in -180 deg .. 180 deg\nobserve omega: rad/s = omega in -10 .. 10\n\
    keep atan2(sin(theta - 180 deg), cos(theta - 180 deg)) within 5 deg as \"upright\"\n\
    weigh theta 10, omega 1, torque 0.1\n";

#[test]
fn an_angle_is_held_where_it_wraps() {
    let file = written("upright_is_pi.plant", UPRIGHT_IS_PI);
    for brain in ["lqr", "mpc", "mppi\"\nmodel = \"plant"] {
        let success = run(&scenario(&file, "", brain, 10))
            .metrics
            .success_fraction();
        assert!(success > 0.9, "{brain}: {success}");
    }
}

/// The shipped double pendulum, of which only positions are observed, and a gust on the cart.
fn positions_only(noise: &str) -> String {
    let (_, text) = tectum_equations::LIBRARY
        .iter()
        .find(|(name, _)| *name == "double_pendulum.plant")
        .expect("it ships");
    let kept: Vec<&str> = text
        .lines()
        .filter(|line| !(line.starts_with("observe ") && line.contains("/s = ")))
        .collect();
    assert_eq!(
        kept.len() + 3,
        text.lines().count(),
        "three speeds are observed"
    );
    kept.join("\n")
        .replace(
            "input force",
            &format!("noise gust: N {noise}\ninput force"),
        )
        .replace("f1 = force", "f1 = force + gust")
        + "\n"
}

#[test]
fn speeds_that_are_not_observed_are_estimated() {
    for (noise, lowest) in [("normal(0)", 0.95), ("normal(1)", 0.9)] {
        let file = written(&format!("{noise}.plant"), &positions_only(noise));
        for brain in ["lqr", "mpc", "mppi\"\nmodel = \"plant"] {
            let outcome = run(&scenario(&file, "", brain, 20));
            let (success, episodes) =
                (outcome.metrics.success_fraction(), outcome.metrics.episodes);
            assert!(
                success > lowest && episodes == 1,
                "{brain}, gusts {noise:?}: {success}, {episodes} episodes"
            );
        }
    }
}

#[test]
fn a_brain_over_a_state_that_nothing_observed_depends_on_is_refused() {
    let text = "body blind\nperiod 20 ms\nstate x: m start 0.1 in -1 .. 1\nstate y: m in -1 .. 1\n\
        state clock: s\ninput u: m/s in -1 .. 1\nd/dt x = u\nd/dt y = u + y * 0.1 [1/s]\n\
        d/dt clock = 1\nobserve x: m = x\nweigh x 1, y 1, u 1\n";
    let refused = |brain: &str| {
        let scenario = scenario(&written("blind.plant", text), "", brain, 1);
        let body = build_body(&scenario).expect("the body");
        let recipe = brain_recipe(&scenario, body.spec());
        let device = Device::open("cpu").expect("the CPU");
        let watch = &mut tectum::WorkProgress::ignore;
        let built = recipe.and_then(|recipe| build_loop(&scenario, body, recipe, &device, watch));
        built
            .err()
            .map_or_else(String::new, |error| error.to_string())
    };
    for brain in ["lqr", "mpc", "mppi\"\nmodel = \"plant"] {
        let error = refused(brain);
        assert!(error.contains("y is not observed"), "{brain}: {error}");
    }
}

/// A plant whose equations have no value left of 0.
const ROOT: &str = "body root\nperiod 20 ms\nstate x: 1 start 1 in -3 .. 3\n\
    state v: 1/s in -3 .. 3\ninput u: 1/s^2 in -10 .. 10\nd/dt x = v\n\
    d/dt v = u - sqrt(x) * 1 [1/s^2]\nobserve x: 1 = x in -3 .. 3\n\
    observe v: 1/s = v in -5 .. 5\nreward = -(x - 0.3)^2\nterminate when x > 3\n";

#[test]
fn samples_without_a_finite_cost_do_not_count() {
    let outcome = run(&scenario(
        &written("root.plant", ROOT),
        "",
        "mppi\"\nmodel = \"plant",
        4,
    ));
    let reward = outcome.metrics.total_reward;
    assert!(reward > -6.0, "{reward}");
    let notes = outcome.notes.join("\n");
    assert!(notes.contains("did not count"), "{notes}");
}

#[test]
fn a_full_turn_is_no_distance_from_an_angle_that_wraps() {
    let arm = "body arm\nperiod 20 ms\nstate angle: rad start 6.2832\nstate speed: rad/s\ninput torque: [1/s^2] in -1 .. 1\nd/dt speed = torque\n\
        d/dt angle = speed\nobserve shown: deg = angle WRAPS\nkeep angle within 2 deg\n";
    let fraction = |wraps: &str| {
        run(&scenario(
            &written("arm.plant", &arm.replace("WRAPS", wraps)),
            "",
            "zero",
            2,
        ))
        .metrics
        .success_fraction()
    };
    assert_eq!((fraction("wraps"), fraction("")), (1.0, 0.0));
}

#[test]
fn a_file_without_weights_or_goal_says_so_and_measures_no_success() {
    let tank = written("plain_tank.plant", TANK);
    let outcome = run(&scenario(&tank, "", "zero", 10));
    assert!(outcome.task.is_none());
    let scenario = scenario(&tank, "", "lqr", 10);
    let body = build_body(&scenario).expect("the body");
    let error = brain_recipe(&scenario, body.spec())
        .map(drop)
        .expect_err("no weights")
        .to_string();
    assert!(error.contains("plain_tank.plant gives no weight to input pump: `weigh NAME WEIGHT, …` needs every input and a state"), "{error}");
}

#[test]
fn a_state_that_is_not_finite_ends_the_run() {
    let broken = written(
        "broken.plant",
        &TANK.replace("leak * h", "leak * h / (h - 0.5 [m]) * 1 [m]"),
    );
    let outcome = built(&scenario(&broken, "", "zero", 10)).simulate();
    let End::Failed(error) = outcome.end else {
        panic!("{:?}", outcome.end)
    };
    assert!(
        error.to_string().contains("number 0 of its state is"),
        "{error}"
    );
}

#[test]
fn plants_from_files_are_planned_with_their_own_equations() {
    for (name, parameters, seconds) in [
        ("cart_pole.plant", "", 6),
        (
            "cart_pole.plant",
            "parameters = { pole = 0.4, half_length = 0.8, cart = 2 }",
            6,
        ),
        ("double_pendulum.plant", "", 4),
        ("quadrotor.plant", "", 6),
    ] {
        let outcome = run(&scenario(name, parameters, "mppi", seconds));
        let success = outcome.metrics.success_fraction();
        assert!(
            success > 0.7 && outcome.metrics.episodes == 1,
            "{name} {parameters}: {success}, {} episodes",
            outcome.metrics.episodes
        );
    }
}

#[test]
fn a_plan_over_equations_agrees_between_devices_and_continues_from_a_snapshot() {
    for name in [
        "cart_pole.plant",
        "double_pendulum.plant",
        "quadrotor.plant",
    ] {
        let scenario = scenario(name, "", "mppi", 1);
        let mut actions = Vec::new();
        for id in ["cpu", "vulkan:0"] {
            let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
                eprintln!("skipped: {id} is absent: plans over equations");
                continue;
            };
            let mut body = build_body(&scenario).expect("the body");
            let brain = || {
                brain_recipe(&scenario, body.spec())
                    .expect("a recipe")
                    .build(&device, &mut tectum::WorkProgress::ignore)
                    .expect("compiles")
            };
            let (mut first, mut second) = (brain(), brain());
            let mut observation = vec![0.0; body.spec().observation.len()];
            let mut action = vec![0.0; body.spec().action.len()];
            for _ in 0..5 {
                body.observe(&mut observation);
                first.tick(&observation, &mut action).expect("ticks");
                body.step(&action);
            }
            second
                .restore(&first.snapshot().expect("reads"))
                .expect("fits");
            body.observe(&mut observation);
            first.tick(&observation, &mut action).expect("ticks");
            let mut again = action.clone();
            second.tick(&observation, &mut again).expect("ticks");
            assert_eq!(action, again, "{name} on {id}");
            actions.push(action);
        }
        let range = build_body(&scenario).expect("the body").spec().action[0].high;
        for (first, other) in actions
            .iter()
            .flat_map(|action| actions[0].iter().zip(action))
        {
            assert!((first - other).abs() < 0.02 * range, "{name}: {actions:?}");
        }
    }
}

/// Actions of the whole range and beyond, some of them not finite.
fn action(spec: &BodySpec, step: usize, instance: usize) -> Vec<f32> {
    let share = |channel: usize| ((step * 37 + instance * 101 + channel * 53) % 211) as f32 / 210.0;
    let numbers =
        spec.action
            .iter()
            .enumerate()
            .map(|(channel, range)| match (step + instance) % 61 {
                7 => f32::NAN,
                8 => f32::INFINITY,
                _ => range.low + (range.high - range.low) * (1.2 * share(channel) - 0.1),
            });
    numbers.collect()
}

#[test]
fn many_plants_step_as_one_by_one_on_every_device() {
    const COUNT: usize = 150;
    for (name, parameters) in [
        ("cart_pole.plant", "parameters = { pole = 0.3 }"),
        ("double_pendulum.plant", ""),
        ("quadrotor.plant", ""),
    ] {
        let settings = scenario(name, parameters, "lqr", 1).body;
        for id in ["cpu", "vulkan:0"] {
            let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
                eprintln!("skipped: {id} is absent: plants side by side");
                continue;
            };
            let mut batch = Batch::of(&settings, COUNT, &device).expect("compiles");
            batch.reset(5).expect("resets");
            let mut body = settings.model().expect("the body");
            let (spec, width) = (body.spec().clone(), batch.states().expect("reads")[0].len());
            let (mut ended, mut had_ended) = (0, vec![false; COUNT]);
            for step in 0..60 {
                let before = batch.states().expect("reads");
                let actions: Vec<f32> = (0..COUNT)
                    .flat_map(|instance| action(&spec, step, instance))
                    .collect();
                batch.step(&actions).expect("steps");
                let after = batch.states().expect("reads");
                for instance in 0..COUNT {
                    body.reset(5 + instance as u64);
                    let mut expected = (0.0, false);
                    if !had_ended[instance] {
                        let mut state = body.state().expect("exact");
                        state
                            .iter_mut()
                            .zip(&before[instance])
                            .for_each(|(number, given)| *number = f64::from(*given));
                        body.set_state(&state).expect("fits");
                        let stepped = body.step(&action(&spec, step, instance));
                        expected = (stepped.reward, stepped.terminated);
                    }
                    let state = body.state().expect("exact");
                    let mut observation = vec![0.0; spec.observation.len()];
                    body.observe(&mut observation);
                    // A gust moves the quadrotor by about 0.002 m/s a step.
                    let bound = |number: f64| if name == "quadrotor.plant" { 0.012 } else { 2e-5 } * number.abs().max(1.0);
                    for (found, expected) in after[instance].iter().zip(&state[..width]) {
                        assert!(
                            (f64::from(*found) - expected).abs() < bound(*expected),
                            "{name} on {id}, step {step}, instance {instance}: {found} {expected}"
                        );
                    }
                    for (found, expected) in batch.observation(instance).iter().zip(&observation) {
                        let off = f64::from(found - expected).abs();
                        let turned = (off - std::f64::consts::TAU).abs();
                        assert!(
                            off.min(turned) < bound(f64::from(*expected)),
                            "{name} on {id}, step {step}, instance {instance}: {found} {expected}"
                        );
                    }
                    assert!(
                        (f64::from(batch.reward(instance)) - expected.0).abs() < bound(expected.0),
                        "{name} on {id}, step {step}, instance {instance}"
                    );
                    assert_eq!(
                        batch.is_terminated(instance),
                        expected.1,
                        "{name} on {id}, step {step}, instance {instance}"
                    );
                    had_ended[instance] = expected.1;
                    ended += usize::from(expected.1);
                }
            }
            assert!(
                name == "quadrotor.plant" || ended > 20,
                "{name}: {ended} episodes ended"
            );
        }
    }
}

#[test]
fn noise_of_many_plants_is_drawn_by_seed_and_step_with_its_deviation() {
    let settings = scenario("quadrotor.plant", "", "lqr", 1).body;
    let mut batch =
        Batch::of(&settings, 4096, &Device::open("cpu").expect("the CPU")).expect("compiles");
    let rest: Vec<f64> = settings
        .model()
        .expect("the body")
        .state()
        .expect("exact")
        .iter()
        .enumerate()
        .map(|(at, x)| if at < 6 { 0.0 } else { *x })
        .collect();
    let hover = [2.4525f32; 2].repeat(4096);
    let mut gusts = |seed: u64| {
        batch.reset(seed).expect("resets");
        batch.set_states(&vec![rest.clone(); 4096]).expect("fits");
        batch.step(&hover).expect("steps");
        // vx after 20 ms is the gust over 0.5 kg.
        batch
            .states()
            .expect("reads")
            .iter()
            .map(|state| f64::from(state[3]) * 0.5 / 0.02)
            .collect::<Vec<_>>()
    };
    let first = gusts(1);
    assert_eq!(first, gusts(1));
    assert_ne!(first, gusts(2));
    let mean = first.iter().sum::<f64>() / 4096.0;
    let deviation = (first.iter().map(|gust| (gust - mean).powi(2)).sum::<f64>() / 4096.0).sqrt();
    assert!(
        mean.abs() < 0.004 && (deviation - 0.05).abs() < 0.003,
        "{mean} ± {deviation}"
    );
}

#[test]
fn the_built_in_bodies_are_their_files() {
    for (name, hidden) in [("cart_pole", 1), ("pendulum", 0), ("acrobot", 0)] {
        let mut from_file =
            build_body(&scenario(&format!("{name}.plant"), "", "zero", 1)).expect("the body");
        let mut built_in = body(name, None).expect("known");
        assert_eq!(from_file.spec().dt_s, built_in.spec().dt_s);
        for trial in 0..40 {
            built_in.reset(trial);
            let states = built_in.state().expect("exact").len() - hidden;
            for tick in 0..100usize {
                // The file's pendulum has a state more, which keeps the reward.
                let mut state = from_file.state().expect("exact");
                state[..states].copy_from_slice(&built_in.state().expect("exact")[..states]);
                from_file.set_state(&state).expect("fits");
                let action = [2.0 * ((tick * 37 + trial as usize * 11) % 23) as f32 / 11.0 - 2.0];
                let (first, second) = (from_file.step(&action), built_in.step(&action));
                let is_near = |first: f64, second: f64| {
                    (first - second).abs() <= 1e-12 * second.abs().max(1.0)
                };
                assert!(
                    is_near(first.reward, second.reward),
                    "{name}, trial {trial}, tick {tick}: {first:?} {second:?}"
                );
                assert_eq!(
                    first.terminated, second.terminated,
                    "{name}, trial {trial}, tick {tick}"
                );
                let [first, second] = [
                    from_file.state().expect("exact"),
                    built_in.state().expect("exact"),
                ];
                for (first, second) in first.iter().zip(&second[..states]) {
                    assert!(
                        is_near(*first, *second),
                        "{name}, trial {trial}, tick {tick}: {first} {second}"
                    );
                }
                if built_in
                    .state()
                    .expect("exact")
                    .get(states)
                    .is_some_and(|fallen| *fallen != 0.0)
                {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_run_with_noise_continues_exactly_from_its_snapshot() {
    let scenario = scenario("quadrotor.plant", "", "lqr", 4);
    let whole = run(&scenario);
    let mut first = built(&scenario);
    first
        .run(&mut SimClock::new(), &mut Discard, &mut |progress| {
            if progress.tick == 77 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })
        .into_result()
        .expect("runs");
    let snapshot = first.snapshot().expect("exact state");
    let mut second = built(&scenario);
    assert_eq!(second.restore(&snapshot).expect("of the same run"), 77);
    let rest = second.simulate();
    assert_eq!(
        whole.metrics.total_reward.to_bits(),
        rest.metrics.total_reward.to_bits()
    );
    // Another seed is another noise and another start.
    let mut other = scenario.clone();
    other.run.seed = 4;
    assert_ne!(run(&other).metrics.total_reward, whole.metrics.total_reward);
}

#[test]
fn mistakes_in_a_scenario_and_its_file_are_located() {
    let parse = |body: &str| {
        Scenario::parse(
            &format!("[body]\n{body}\n[brain]\nname = \"lqr\"\n"),
            "mine",
            "mine.toml",
        )
        .map(drop)
        .expect_err("refused")
        .to_string()
    };
    let name = "cart_pole.plant";
    let refused = parse(&format!("name = \"{name}\"\nparameters = {{ mass = 3 }}"));
    assert!(
        refused
            .starts_with("mine:3: unknown key \"mass\"; known: gravity, cart, pole, half_length"),
        "{refused}"
    );
    let refused = parse(&format!("name = \"{name}\"\nparameters = {{ pole = 300 }}"));
    assert!(
        refused.starts_with("mine:3: pole is 300, needs a number from 0.001 to 10"),
        "{refused}"
    );
    let refused = parse(&format!(
        "name = \"{name}\"\nparameters = {{ pole = \"heavy\" }}"
    ));
    assert!(
        refused.starts_with("mine:3") && refused.contains("pole is \"heavy\""),
        "{refused}"
    );
    let refused = parse("name = \"absent.plant\"");
    assert!(
        refused
            .contains("absent.plant: not readable, and none of those that ship (acrobot.plant, "),
        "{refused}"
    );
}
