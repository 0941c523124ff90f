use tectum::ErrorKind;

use super::conformance::reference_cost;
use super::*;
use crate::body::body;

fn untrained(name: &str, hidden: &[usize]) -> (Twin, MppiParameters) {
    conformance::untrained(name, hidden).expect("known")
}

/// Random controls rolled out on a device.
fn device_costs(
    model: &Model,
    parameters: &MppiParameters,
    observation: &[f32],
    u: &[f32],
    device: &Device,
) -> Vec<f32> {
    let mut plan = PlanBuilder::new("rollout");
    let given = plan.input("observation", DType::F32, observation.len());
    let controls = plan.input("u", DType::F32, u.len());
    let [numbers, table] = model.learned(parameters).expect("a twin");
    let table = plan.constant("table", &table);
    let weights = plan.constant("weights", &numbers);
    let costs = plan.output("costs", DType::F32, parameters.samples);
    let network = match model {
        Model::Twin(twin) => &twin.network,
        Model::Recorded(twin) => &twin.ensemble.network,
        Model::Plant { .. } | Model::Equations(_) => panic!("a twin"),
    };
    let (kernel, shape, numbers) =
        rollout_kernel(network, model.model_input(), parameters.horizon).expect("small enough");
    let scratch = plan.temp(DType::F32, numbers * parameters.samples);
    let groups = parameters.samples.div_ceil(ROLLOUT_SAMPLES) as u32;
    let views = RolloutViews {
        observation: given,
        u: controls,
        table,
        weights,
        costs,
        scratch,
    };
    plan.launch(
        &kernel,
        parameters.rollout(model.layout().expect("a twin"), shape, views),
        groups,
    )
    .expect("records");
    let mut run = plan
        .finish()
        .expect("whole")
        .compile(device)
        .expect("compiles");
    run.input::<f32>(given).copy_from_slice(observation);
    run.input::<f32>(controls).copy_from_slice(u);
    run.run().expect("runs");
    run.output::<f32>(costs).to_vec()
}

#[test]
fn a_cost_that_is_not_finite_counts_as_the_greatest() {
    for id in ["cpu", "vulkan:0"] {
        let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
            eprintln!("skipped: {id} is absent: costs that are not finite");
            continue;
        };
        let (twin, mut parameters) = untrained("pendulum", &[64, 64]);
        (parameters.samples, parameters.horizon) = (64, 2);
        let mut u = vec![0.5; 3 * 64];
        (u[64 + 3], u[128 + 5]) = (f32::NAN, f32::INFINITY);
        let costs = device_costs(
            &Model::Twin(twin.clone()),
            &parameters,
            &[0.1, 0.2, 0.0],
            &u,
            &device,
        );
        assert_eq!((costs[3], costs[5]), (1e9, 1e9), "{id}");
        assert!(costs[0] < 100.0, "{id}: {}", costs[0]);
    }
}

/// One tick on two devices from the same state: the same noise bits, nearly the same action.
#[test]
fn a_tick_agrees_between_devices_and_repeats_from_a_snapshot() {
    let (twin, parameters) = untrained("rig", &[64, 64]);
    let observation = [0.3, -1.0, 40.0, 170.0];
    let mut actions = Vec::new();
    for id in ["cpu", "vulkan:0"] {
        let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
            eprintln!("skipped: {id} is absent: MPPI ticks");
            continue;
        };
        let mut brain =
            Mppi::new(Model::Twin(twin.clone()), &parameters, &device, 3).expect("compiles");
        let mut action = [0.0];
        brain.tick(&observation, &mut action).expect("ticks");
        let snapshot = brain.snapshot().expect("reads");
        let stats = brain.tick(&observation, &mut action).expect("ticks");
        let expected = u32::from(id != "cpu");
        assert_eq!(
            (stats.transfers_up, stats.transfers_down, stats.submissions),
            (expected, expected, 1),
            "{id}"
        );
        let mut other =
            Mppi::new(Model::Twin(twin.clone()), &parameters, &device, 99).expect("compiles");
        other.restore(&snapshot).expect("fits");
        let mut again = [0.0];
        other.tick(&observation, &mut again).expect("ticks");
        assert_eq!(action[0].to_bits(), again[0].to_bits(), "{id}");
        actions.push(action[0]);
    }
    assert!(
        actions
            .iter()
            .all(|action| (action - actions[0]).abs() < 1e-3),
        "{actions:?}"
    );
}

#[test]
fn parameters_that_do_not_fit_are_named() {
    let (twin, parameters) = untrained("rig", &[8]);
    let faults: [(&str, MppiParameters); 5] = [
        (
            "samples is 100",
            MppiParameters {
                samples: 100,
                ..parameters.clone()
            },
        ),
        (
            "horizon is 0",
            MppiParameters {
                horizon: 0,
                ..parameters.clone()
            },
        ),
        (
            "hold is 17",
            MppiParameters {
                hold: 17,
                ..parameters.clone()
            },
        ),
        (
            "sigma is NaN",
            MppiParameters {
                sigma: f32::NAN,
                ..parameters.clone()
            },
        ),
        (
            "4",
            MppiParameters {
                channels: vec![],
                ..parameters
            },
        ),
    ];
    let cpu = Device::open("cpu").expect("always there");
    for (needle, parameters) in faults {
        let error = Mppi::new(Model::Twin(twin.clone()), &parameters, &cpu, 0)
            .err()
            .expect(needle);
        assert!(
            error.kind() == ErrorKind::Invalid && error.to_string().contains(needle),
            "{error}"
        );
    }
    let wide = untrained("rig", &[200]);
    assert!(
        Mppi::new(Model::Twin(wide.0), &wide.1, &cpu, 0)
            .err()
            .expect("too wide")
            .to_string()
            .contains("200")
    );
}

#[test]
fn a_plant_without_equations_is_refused() {
    let parameters = MppiParameters::for_plant("pendulum").expect("known");
    let layout =
        TwinLayout::of(body("pendulum", None).expect("known").spec(), false).expect("one action");
    let model = Model::Plant {
        body: "rig".into(),
        layout,
    };
    let error = Mppi::new(
        model,
        &parameters,
        &Device::open("cpu").expect("always there"),
        0,
    )
    .err()
    .expect("no equations");
    assert!(
        error
            .to_string()
            .contains("no equations to roll out of body \"rig\"; known: pendulum"),
        "{error}"
    );
}

/// Normal deviates of a key, as the plan draws them; conformance compares them with their own
/// reference.
fn noise(key: [u32; 4], len: usize) -> Vec<f32> {
    let mut plan = PlanBuilder::new("noise");
    let (key_view, eps) = (
        plan.input("key", DType::U32, 4),
        plan.output("eps", DType::F32, len),
    );
    plan.normal(key_view, eps).expect("records");
    let mut run = plan
        .finish()
        .expect("whole")
        .compile(&Device::open("cpu").expect("always there"))
        .expect("compiles");
    run.input::<u32>(key_view).copy_from_slice(&key);
    run.run().expect("runs");
    run.output::<f32>(eps).to_vec()
}

/// Noise, costs, weights, mean, action and shift of a whole tick in float64.
#[test]
fn a_whole_tick_is_what_the_equations_say_on_every_device() {
    const SEED: u64 = 0x1234_5678_9abc;
    let (twin, mut parameters) = untrained("pendulum", &[20]);
    (
        parameters.samples,
        parameters.horizon,
        parameters.hold,
        parameters.iterations,
    ) = (128, 9, 2, 1);
    // A temperature high enough that many samples count.
    parameters.temperature = 0.7;
    // So that the last action, which the snapshot brings, counts.
    parameters.rate_weight = 50.0;
    let (samples, horizon, layout) = (parameters.samples, parameters.horizon, &twin.layout);
    let (observation, last_action) = ([0.7f32, -1.5], 0.4f32);
    let before: Vec<f32> = (0..horizon).map(|t| 0.9 * (1.3 * t as f32).sin()).collect();

    let eps = noise(
        [SEED as u32, (SEED >> 32) as u32, NOISE_STREAM, 0],
        samples * horizon.div_ceil(parameters.hold),
    );
    let sigma = parameters.deviations(0);
    let control = |t: usize, k: usize| match k {
        0 => f64::from(before[t]),
        _ => (f64::from(before[t])
            + f64::from(sigma[k]) * f64::from(eps[t / parameters.hold * samples + k]))
        .clamp(layout.low.into(), layout.high.into()),
    };
    let costs: Vec<f64> = (0..samples)
        .map(|k| {
            let u: Vec<f32> = std::iter::once(last_action)
                .chain((0..horizon).map(|t| control(t, k) as f32))
                .collect();
            reference_cost(&twin, &parameters, &observation, &u)
        })
        .collect();
    let (least, average) = (
        costs.iter().copied().fold(f64::INFINITY, f64::min),
        costs.iter().sum::<f64>() / samples as f64,
    );
    let spread = f64::from(parameters.temperature) * (average - least + 1e-6);
    let weights: Vec<f64> = costs
        .iter()
        .map(|cost| ((least - cost) / spread).exp())
        .collect();
    let total: f64 = weights.iter().sum();
    let weighted: Vec<f64> = (0..horizon)
        .map(|t| {
            (0..samples)
                .map(|k| weights[k] / total * control(t, k))
                .sum()
        })
        .collect();
    let shifted: Vec<f64> = weighted[1..]
        .iter()
        .chain(weighted.last())
        .copied()
        .collect();
    // Several samples count, so that weights matter, and the mean moves, so that a shift does.
    assert!(
        1.0 / total < 0.7
            && shifted
                .iter()
                .zip(&weighted)
                .any(|(a, b)| (a - b).abs() > 0.1),
        "{weights:?} {weighted:?}"
    );

    for id in ["cpu", "vulkan:0", "cuda:0"] {
        let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
            eprintln!("skipped: {id} is absent: a whole MPPI tick");
            continue;
        };
        let mut brain =
            Mppi::new(Model::Twin(twin.clone()), &parameters, &device, SEED).expect("compiles");
        let mut snapshot = brain.snapshot().expect("reads");
        snapshot.insert("mean", Array::F32(before.clone()));
        snapshot.insert("last_action", Array::F32(vec![last_action]));
        brain.restore(&snapshot).expect("fits");
        let mut action = [0.0];
        brain.tick(&observation, &mut action).expect("ticks");
        let near = |found: f32, expected: f64, what: &str| {
            assert!(
                (f64::from(found) - expected).abs() < 1e-3 * expected.abs().max(1.0),
                "{id}: {what} is {found}, not {expected}"
            );
        };
        near(
            action[0],
            weighted[0].clamp(layout.low.into(), layout.high.into()),
            "the action",
        );
        let [found_least, found_average, found_best, found_count] = brain.costs();
        near(found_least, least, "the minimum cost");
        near(found_average, average, "the mean cost");
        near(found_best, 1.0 / total, "the greatest weight");
        assert_eq!(found_count, parameters.samples as f32);
        let after = brain.snapshot().expect("reads");
        let mean = after.f32("mean", horizon).expect("kept");
        mean.iter()
            .zip(&shifted)
            .for_each(|(found, expected)| near(*found, *expected, "the next mean"));
    }
}

/// A twin's fields are public: an inconsistent twin would make kernels read beyond its weights.
#[test]
fn suspect_a_twin_whose_parts_do_not_fit_is_refused() {
    let device = Device::open("cpu").expect("always there");
    let refused = |change: &dyn Fn(&mut Twin), message: &str| {
        let (mut twin, parameters) = untrained("pendulum", &[8]);
        change(&mut twin);
        let error = Mppi::new(Model::Twin(twin), &parameters, &device, 1)
            .err()
            .expect("refused");
        assert!(
            error.kind() == ErrorKind::Invalid && error.to_string().contains(message),
            "{error}"
        );
    };
    refused(&|twin| twin.weights.truncate(3), "weights; ");
    refused(&|twin| twin.change_mean.clear(), "mean changes; ");
    refused(
        &|twin| twin.change_deviation.push(1.0),
        "deviations of changes; ",
    );
    refused(
        &|twin| {
            twin.network = Network::new(twin.network.features() + 1, &[8], twin.network.channels())
                .expect("above 0")
        },
        "features of the network; ",
    );
    refused(
        &|twin| {
            twin.network = Network::new(twin.network.features(), &[8], twin.network.channels() + 1)
                .expect("above 0")
        },
        "channels of the network; ",
    );
}
