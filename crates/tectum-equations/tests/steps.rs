//! Steps of the plants, compared with the same equations in Rust; linearisations, with central
//! differences.

use tectum_equations::{Integrator, LIBRARY, Step, System};

use super::Random;

pub fn plant(name: &str) -> System {
    let (origin, text) = LIBRARY
        .iter()
        .find(|(origin, _)| origin.starts_with(name))
        .expect("a plant");
    System::parse(text, origin).expect("it is valid")
}

/// Rates of a state under inputs and noise.
type Rates = fn(&[f64], &[f64], &[f64]) -> Vec<f64>;

fn cart_pole([x, v, theta, omega]: [f64; 4], force: f64) -> [f64; 4] {
    let (cart, pole, half_length, gravity) = (1.0, 0.1, 0.5, 9.8);
    let total = cart + pole;
    let (sine, cosine) = theta.sin_cos();
    let push = (force + pole * half_length * omega * omega * sine) / total;
    let turning = (gravity * sine - cosine * push)
        / (half_length * (4.0 / 3.0 - pole * cosine * cosine / total));
    let acceleration = push - pole * half_length * turning * cosine / total;
    [
        x + 0.02 * v,
        v + 0.02 * acceleration,
        theta + 0.02 * omega,
        omega + 0.02 * turning,
    ]
}

/// The mass matrix is eliminated here, not inverted by determinants.
fn double_pendulum(s: &[f64], inputs: &[f64], _: &[f64]) -> Vec<f64> {
    let (cart, m1, m2, l1, l2, g) = (1.0, 0.1, 0.1, 0.5, 0.5, 9.81);
    let (a, b, va, vb) = (s[1], s[2], s[4], s[5]);
    let mut rows = [
        [
            cart + m1 + m2,
            (m1 + m2) * l1 * a.cos(),
            m2 * l2 * b.cos(),
            inputs[0] + (m1 + m2) * l1 * va * va * a.sin() + m2 * l2 * vb * vb * b.sin(),
        ],
        [
            (m1 + m2) * l1 * a.cos(),
            (m1 + m2) * l1 * l1,
            m2 * l1 * l2 * (a - b).cos(),
            (m1 + m2) * g * l1 * a.sin() - m2 * l1 * l2 * vb * vb * (a - b).sin(),
        ],
        [
            m2 * l2 * b.cos(),
            m2 * l1 * l2 * (a - b).cos(),
            m2 * l2 * l2,
            m2 * g * l2 * b.sin() + m2 * l1 * l2 * va * va * (a - b).sin(),
        ],
    ];
    for pivot in 0..3 {
        for row in pivot + 1..3 {
            let factor = rows[row][pivot] / rows[pivot][pivot];
            let above = rows[pivot];
            rows[row]
                .iter_mut()
                .zip(above)
                .skip(pivot)
                .for_each(|(number, above)| *number -= factor * above);
        }
    }
    let third = rows[2][3] / rows[2][2];
    let second = (rows[1][3] - rows[1][2] * third) / rows[1][1];
    let first = (rows[0][3] - rows[0][1] * second - rows[0][2] * third) / rows[0][0];
    vec![s[3], va, vb, first, second, third]
}

fn quadrotor(s: &[f64], inputs: &[f64], noise: &[f64]) -> Vec<f64> {
    let (mass, arm, inertia, drag) = (0.5, 0.15, 0.006, 0.1);
    let (tilt, vx, vz, lift) = (s[2], s[3], s[4], inputs[0] + inputs[1]);
    let (ax, az) = (
        (noise[0] - lift * tilt.sin() - drag * vx) / mass,
        (lift * tilt.cos() - drag * vz) / mass - 9.81,
    );
    vec![
        vx,
        vz,
        s[5],
        ax,
        az,
        arm * (inputs[1] - inputs[0]) / inertia,
    ]
}

fn runge_kutta(
    rates: Rates,
    state: &[f64],
    inputs: &[f64],
    noise: &[f64],
    step_s: f64,
    steps: usize,
) -> Vec<f64> {
    let moved = |state: &[f64], rates: &[f64], by: f64| {
        state
            .iter()
            .zip(rates)
            .map(|(value, rate)| value + by * rate)
            .collect::<Vec<f64>>()
    };
    let mut now = state.to_vec();
    for _ in 0..steps {
        let k1 = rates(&now, inputs, noise);
        let k2 = rates(&moved(&now, &k1, step_s / 2.0), inputs, noise);
        let k3 = rates(&moved(&now, &k2, step_s / 2.0), inputs, noise);
        let k4 = rates(&moved(&now, &k3, step_s), inputs, noise);
        now = (0..now.len())
            .map(|i| now[i] + step_s * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]) / 6.0)
            .collect();
    }
    now
}

/// Relative to the greater of 1 and the number.
fn assert_near(found: &[f64], expected: &[f64], bound: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!(
            (found - expected).abs() <= bound * expected.abs().max(1.0),
            "{what}: number {index} is {found}, expected {expected}"
        );
    }
}

/// A state and inputs drawn from the ranges of a system.
fn drawn(system: &System, random: &mut Random) -> (Vec<f64>, Vec<f64>) {
    let state = system
        .states()
        .iter()
        .map(|state| {
            state
                .range
                .map_or(0.0, |[low, high]| random.within(low, high))
        })
        .collect();
    let inputs = system
        .inputs()
        .iter()
        .map(|input| random.within(input.range[0], input.range[1]) * input.unit.scale)
        .collect();
    (state, inputs)
}

#[test]
fn plants_step_as_the_same_equations_in_rust_do() {
    let mut random = Random(1);
    for name in ["cart_pole", "double_pendulum", "quadrotor"] {
        let system = plant(name);
        let parameters = system.default_parameters();
        for _ in 0..1000 {
            let (mut state, inputs) = drawn(&system, &mut random);
            let noise: Vec<f64> = system
                .noises()
                .iter()
                .map(|_| random.within(-0.1, 0.1))
                .collect();
            let expected = match name {
                "cart_pole" => {
                    cart_pole(state[..].try_into().expect("four states"), inputs[0]).to_vec()
                }
                "double_pendulum" => {
                    runge_kutta(double_pendulum, &state, &inputs, &noise, 0.005, 2)
                }
                _ => runge_kutta(quadrotor, &state, &inputs, &noise, 0.02, 1),
            };
            system.step(&parameters, &mut state, &inputs, &noise);
            assert_near(&state, &expected, 1e-12, name);
        }
    }
}

#[test]
fn linearizations_are_central_differences() {
    let mut random = Random(2);
    for (origin, text) in LIBRARY {
        let system = System::parse(text, origin).expect("valid");
        let (parameters, noise) = (
            system.default_parameters(),
            vec![0.0; system.noises().len()],
        );
        let (s, u) = (system.states().len(), system.inputs().len());
        for _ in 0..20 {
            let (state, inputs) = drawn(&system, &mut random);
            let linear = system.linearize(&parameters, &state, &inputs);
            let stepped = |place: usize, by: f64| {
                let (mut state, mut inputs) = (state.clone(), inputs.clone());
                *(if place < s {
                    &mut state[place]
                } else {
                    &mut inputs[place - s]
                }) += by;
                system.step(&parameters, &mut state, &inputs, &noise);
                state
            };
            for place in 0..s + u {
                let (above, below) = (stepped(place, 1e-5), stepped(place, -1e-5));
                let expected: Vec<f64> = above
                    .iter()
                    .zip(&below)
                    .map(|(above, below)| (above - below) / 2e-5)
                    .collect();
                let found: Vec<f64> = (0..s)
                    .map(|row| {
                        if place < s {
                            linear.a[row * s + place]
                        } else {
                            linear.b[row * u + place - s]
                        }
                    })
                    .collect();
                assert_near(&found, &expected, 1e-6, origin);
            }
        }
    }
}

#[test]
fn equilibria_rest() {
    for (origin, text) in LIBRARY {
        let system = System::parse(text, origin).expect("valid");
        let parameters = system.default_parameters();
        let (equilibrium, inputs) = system.equilibrium(&parameters);
        let mut state = equilibrium.clone();
        system.step(
            &parameters,
            &mut state,
            &inputs,
            &vec![0.0; system.noises().len()],
        );
        assert_near(&state, &equilibrium, 1e-12, origin);
    }
    // Half of the weight, for another mass too.
    let quadrotor = plant("quadrotor");
    let parameters = quadrotor
        .with_parameters([("mass", 1.0)])
        .expect("in range");
    assert_eq!(quadrotor.equilibrium(&parameters).1, [9.81 / 2.0; 2]);
}

#[test]
fn a_semi_implicit_step_sees_the_states_before_it() {
    let text = "body spring\nperiod 0.1 s\nintegrate semi_implicit\nstate x: m start 1\nstate v: m/s\ninput f: N in -1 .. 1\n\
        d/dt v = f / 1 [kg] - 4 [1/s^2] * x\nd/dt x = v\nobserve x: m = x";
    let system = System::parse(text, "spring").expect("valid");
    assert_eq!(system.integrator(), (Integrator::SemiImplicit, 1));
    let mut state = system.start(&[], || 0.5);
    system.step(&[], &mut state, &[0.0], &[]);
    assert_near(&state, &[0.96, -0.4], 1e-15, "spring");
    // Without friction it gains no energy: after a hundred periods the amplitude is still that of
    // the start, to the order of the step.
    (0..1000).for_each(|_| {
        system.step(&[], &mut state, &[0.0], &[]);
        assert!(state[0].abs() < 1.02);
    });
}

#[test]
fn events_set_states_all_at_once() {
    let text = "body ball\nperiod 10 ms\nintegrate semi_implicit\nparameter bounce = 0.8 in 0 .. 1\nstate height: m start 1\nstate v: m/s\n\
        input push: m/s^2 in -1 .. 1\nd/dt v = push - 9.81 [m/s^2]\nd/dt height = v\nwhen height < 0 and v < 0: v = -bounce * v, height = -height\n\
        observe height: cm = height\nreward = height / 1 [m]\nterminate when height > 2 m";
    let system = System::parse(text, "ball").expect("valid");
    let parameters = system.default_parameters();
    let mut state = system.start(&parameters, || 0.5);
    let (mut highest_after_bounce, mut has_bounced) = (0.0f64, false);
    for _ in 0..100 {
        let Step { terminated, .. } = system.step(&parameters, &mut state, &[0.0], &[]);
        assert!(!terminated && state[0] >= 0.0);
        has_bounced |= state[1] > 0.0;
        highest_after_bounce = if has_bounced {
            highest_after_bounce.max(state[0])
        } else {
            0.0
        };
    }
    // 0.8 of the speed is 0.64 of the height.
    assert!(
        (highest_after_bounce - 0.64).abs() < 0.05,
        "{highest_after_bounce}"
    );
    assert_eq!(system.observe(&parameters, &[0.5, 0.0]), [50.0]);
}

#[test]
fn noise_has_its_distribution_and_starts_their_range() {
    let system = plant("quadrotor");
    let parameters = system.default_parameters();
    let mut random = Random(3);
    let drawn: Vec<f64> = (0..20_000)
        .map(|_| system.disturbances(&parameters, || [1.0 - random.unit(), random.unit()])[0])
        .collect();
    let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
    let deviation =
        (drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / drawn.len() as f64).sqrt();
    assert!(
        mean.abs() < 0.002 && (deviation - 0.05).abs() < 0.002,
        "{mean} {deviation}"
    );
    assert_eq!(system.start(&parameters, || 0.0)[..3], [-0.5, -0.5, -0.2]);
    assert_eq!(system.start(&parameters, || 1.0)[3..], [0.0; 3]);
}

#[test]
fn what_a_file_says_to_controllers_is_read() {
    let system = plant("cart_pole");
    let goal = system.goal().expect("a goal");
    assert_eq!(
        (goal.label.as_str(), goal.bound),
        ("upright", 10f64.to_radians())
    );
    assert_eq!(system.weights().states, [1.0, 0.25, 100.0, 1.0]);
    assert_eq!(
        system.observed_states(),
        [Some(0), Some(1), Some(2), Some(3)]
    );
    let input = &system.inputs()[0];
    assert_eq!(
        (input.is_discrete, input.safe, input.range),
        (true, 10.0, [-10.0, 10.0])
    );
    assert_eq!(
        system.measure(&system.default_parameters(), &[0.0, 0.0, 0.25, 0.0]),
        Some(0.25)
    );
    // An angle of four and a half turns is half a turn.
    let shown = system.observe(
        &system.default_parameters(),
        &[0.0, 0.0, 9.0 * std::f64::consts::PI, 0.0],
    );
    assert!((shown[2].abs() - std::f64::consts::PI).abs() < 1e-12);
}
