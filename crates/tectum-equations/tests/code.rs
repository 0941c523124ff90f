//! Straight code against the same computation in f64: on the CPU over lanes, and on devices as
//! WGSL.

use std::fmt::Write;

use tectum::{DType, Device, Kernel, PlanBuilder, Prelude};
use tectum_equations::code::{Code, LANES, Lanes, Number, Recorder};
use tectum_equations::{Arithmetic, BinaryOp, Comparison, System, UnaryOp};

use super::Random;
use super::bounded::{Bounded, Bounds};
use super::random_systems::random_system;
use super::steps::plant;

/// What code and arithmetic make of the same inputs: results of each lane, and the bounded number.
struct Computed {
    code: Code,
    inputs: Vec<Vec<f32>>,
    expected: Vec<Vec<Bounded>>,
}

impl Computed {
    /// Runs the code over lanes, and compares. Returns how many results were close enough to a
    /// discontinuity to be anything.
    fn check(&self, what: &str) -> usize {
        let mut slots = self.code.slots();
        for (lane, inputs) in self.inputs.iter().enumerate() {
            inputs
                .iter()
                .zip(&mut slots)
                .for_each(|(input, slot)| slot[lane] = *input);
        }
        self.code.run(&mut slots);
        let found: Vec<Vec<f32>> = (0..LANES)
            .map(|lane| {
                self.code
                    .results()
                    .iter()
                    .map(|place| slots[*place][lane])
                    .collect()
            })
            .collect();
        self.compare(&found, what)
    }

    fn compare(&self, found: &[Vec<f32>], what: &str) -> usize {
        let mut unknown = 0;
        for (lane, (found, expected)) in found.iter().zip(&self.expected).enumerate() {
            for (place, (found, Bounded { value, error })) in found.iter().zip(expected).enumerate()
            {
                if !error.is_finite() || value.is_nan() {
                    unknown += 1;
                    continue;
                }
                let off = (f64::from(*found) - value).abs();
                assert!(
                    off <= *error,
                    "{what}, lane {lane}, result {place}: {found}, expected {value} ± {error:e}; inputs {:?}",
                    self.inputs[lane]
                );
            }
        }
        unknown
    }
}

/// A step of a system from random states under random inputs.
fn step(system: &System, draw: &mut dyn FnMut() -> (Vec<f32>, Vec<f32>)) -> Computed {
    let (states, inputs, noises) = (
        system.states().len(),
        system.inputs().len(),
        system.noises().len(),
    );
    let parameters = system.default_parameters();
    let mut recorder = Recorder::default();
    let mut state: Vec<Number> = (0..states).map(|_| recorder.input()).collect();
    let given: Vec<Number> = (0..inputs).map(|_| recorder.input()).collect();
    let calm = vec![Number::Constant(0.0); noises];
    let (reward, _) = system.step_with(&mut recorder, &parameters, &mut state, [&given, &calm]);
    state.push(reward);
    let (mut drawn, mut expected) = (Vec::new(), Vec::new());
    for _ in 0..LANES {
        let (start, given) = draw();
        let mut state: Vec<Bounded> = start.iter().map(|number| Bounded::exact(*number)).collect();
        let inputs: Vec<Bounded> = given.iter().map(|number| Bounded::exact(*number)).collect();
        let calm = vec![Bounded::exact(0.0); noises];
        let (reward, _) = system.step_with(&mut Bounds, &parameters, &mut state, [&inputs, &calm]);
        state.push(reward);
        drawn.push(start.into_iter().chain(given).collect());
        expected.push(state);
    }
    Computed {
        code: recorder.finish(&state),
        inputs: drawn,
        expected,
    }
}

/// Records an operation of two inputs, and computes it with bounds.
fn operation(
    record: &dyn Fn(&mut Recorder, Number, Number) -> Number,
    bound: &dyn Fn(Bounded, Bounded) -> Bounded,
    draw: &mut dyn FnMut() -> [f32; 2],
) -> Computed {
    let mut recorder = Recorder::default();
    let (a, b) = (recorder.input(), recorder.input());
    let result = record(&mut recorder, a, b);
    let inputs: Vec<[f32; 2]> = (0..LANES).map(|_| draw()).collect();
    let expected = inputs
        .iter()
        .map(|[a, b]| vec![bound(Bounded::exact(*a), Bounded::exact(*b))])
        .collect();
    Computed {
        code: recorder.finish(&[result]),
        inputs: inputs.iter().map(|pair| pair.to_vec()).collect(),
        expected,
    }
}

#[test]
fn each_operation_is_that_of_the_reference() {
    let mut random = Random(11);
    let ranges = [
        (-3.0, 3.0),
        (0.001, 40.0),
        (-0.999, 0.999),
        (-30_000.0, 30_000.0),
    ];
    use UnaryOp::{Abs, Acos, Asin, Atan, Cos, Exp, Log, Negate, Sign, Sin, Sqrt, Tan, Tanh};
    for (op, range) in [
        (Negate, 0),
        (Abs, 0),
        (Sin, 3),
        (Cos, 3),
        (Sin, 0),
        (Cos, 0),
        (Tan, 0),
        (Asin, 2),
        (Acos, 2),
        (Atan, 3),
        (Atan, 0),
    ]
    .into_iter()
    .chain([(Exp, 0), (Log, 1), (Sqrt, 1), (Tanh, 0), (Sign, 0)])
    {
        let (low, high) = ranges[range];
        let mut draw = || [random.within(low, high) as f32, 0.0];
        let computed = operation(
            &|recorder, a, _| recorder.unary(op, &a),
            &|a, _| Bounds.unary(op, &a),
            &mut draw,
        );
        assert!(computed.check(&format!("{op:?}")) <= 1, "{op:?}");
    }
    use BinaryOp::{Add, Atan2, Divide, Maximum, Minimum, Multiply, Subtract};
    for op in [Add, Subtract, Multiply, Divide, Atan2, Minimum, Maximum] {
        let mut draw = || {
            [
                random.within(-3.0, 3.0) as f32,
                random.within(-3.0, 3.0) as f32,
            ]
        };
        let computed = operation(
            &|recorder, a, b| recorder.binary(op, &a, &b),
            &|a, b| Bounds.binary(op, &a, &b),
            &mut draw,
        );
        assert_eq!(computed.check(&format!("{op:?}")), 0, "{op:?}");
    }
    for exponent in [2.0, 3.0, 7.0, -1.0, -4.0, 0.5, 1.5, -2.5] {
        let mut draw = || [random.within(0.2, 3.0) as f32, 0.0];
        let exponent_of = |arithmetic: &mut Bounds| arithmetic.constant(exponent);
        let bound = |a: Bounded, _| {
            Bounds.binary(
                BinaryOp::Power,
                &a,
                &Bounded {
                    value: exponent,
                    ..exponent_of(&mut Bounds)
                },
            )
        };
        let computed = operation(
            &|recorder, a, _| recorder.binary(BinaryOp::Power, &a, &Number::Constant(exponent)),
            &bound,
            &mut draw,
        );
        assert_eq!(computed.check(&format!("^{exponent}")), 0);
    }
    // Numbers at the ends and edges, exactly.
    for (op, [a, b], expected) in [
        (Atan2, [0.0f32, 0.0], 0.0f32),
        (Atan2, [0.0, -1.0], std::f32::consts::PI),
        (Atan2, [1.0, 0.0], std::f32::consts::FRAC_PI_2),
        (Atan2, [-1.0, 0.0], -std::f32::consts::FRAC_PI_2),
        (Minimum, [1.0, 2.0], 1.0),
        (Maximum, [1.0, 2.0], 2.0),
    ] {
        let mut recorder = Recorder::default();
        let (x, y) = (recorder.input(), recorder.input());
        let result = recorder.binary(op, &x, &y);
        let code = recorder.finish(&[result]);
        let mut slots = code.slots();
        (slots[0], slots[1]) = (Lanes::of(a), Lanes::of(b));
        code.run(&mut slots);
        assert_eq!(
            slots[code.results()[0]],
            Lanes::of(expected),
            "{op:?} of {a} and {b}"
        );
    }
}

#[test]
fn conditions_hold_as_in_the_reference() {
    let mut random = Random(12);
    use Comparison::{Greater, GreaterOrEqual, Less, LessOrEqual};
    for op in [Less, LessOrEqual, Greater, GreaterOrEqual] {
        // Often equal.
        let mut draw = || [random.below(4) as f32, random.below(4) as f32];
        let record = |recorder: &mut Recorder, a, b| {
            let (holds, other) = (
                recorder.compare(op, &a, &b),
                recorder.compare(Comparison::Less, &a, &Number::Constant(2.0)),
            );
            let not = recorder.not(&other);
            let (both, either) = (recorder.and(&holds, &other), recorder.or(&holds, &not));
            let both = recorder.flag(&both);
            let either = recorder.flag(&either);
            let either = recorder.scaled(&either, 2.0);
            recorder.add(&both, &either)
        };
        let bound = |a: Bounded, b: Bounded| {
            let holds = match op {
                Less => a.value < b.value,
                LessOrEqual => a.value <= b.value,
                Greater => a.value > b.value,
                GreaterOrEqual => a.value >= b.value,
            };
            let other = a.value < 2.0;
            Bounded {
                value: f64::from(u8::from(holds && other))
                    + 2.0 * f64::from(u8::from(holds || !other)),
                error: 0.0,
            }
        };
        assert_eq!(
            operation(&record, &bound, &mut draw).check(&format!("{op:?}")),
            0
        );
    }
    let mut recorder = Recorder::default();
    let a = recorder.input();
    let is_finite = recorder.is_finite(&a);
    let flag = recorder.flag(&is_finite);
    let code = recorder.finish(&[flag]);
    let mut slots = code.slots();
    (slots[0][0], slots[0][1], slots[0][2], slots[0][3]) =
        (f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX);
    code.run(&mut slots);
    assert_eq!(slots[code.results()[0]][..5], [0.0, 0.0, 0.0, 1.0, 1.0]);
}

#[test]
fn constants_are_folded_and_what_is_not_needed_is_left_out() {
    let mut recorder = Recorder::default();
    let x = recorder.input();
    let sine = recorder.unary(UnaryOp::Sin, &Number::Constant(0.5));
    let factor = recorder.binary(BinaryOp::Multiply, &sine, &Number::Constant(2.0));
    let unused = recorder.unary(UnaryOp::Exp, &x);
    let y = recorder.binary(BinaryOp::Multiply, &x, &factor);
    let again = recorder.binary(BinaryOp::Multiply, &x, &factor);
    assert_eq!(
        (
            y,
            recorder.binary(BinaryOp::Add, &y, &Number::Constant(0.0))
        ),
        (again, y)
    );
    assert_ne!(unused, y);
    assert_eq!(
        recorder.finish(&[y]).wgsl(),
        "    let v0 = i0 * 0.9588511f;\n"
    );
}

#[test]
fn plants_step_in_f32_within_the_rounding_of_their_operations() {
    let mut random = Random(13);
    for name in ["cart_pole", "double_pendulum", "quadrotor"] {
        let system = plant(name);
        let mut draw = || {
            let state = system
                .states()
                .iter()
                .map(|state| {
                    state
                        .range
                        .map_or(0.0, |[low, high]| random.within(low, high))
                        as f32
                })
                .collect();
            let inputs = system
                .inputs()
                .iter()
                .map(|input| {
                    (random.within(input.range[0], input.range[1]) * input.unit.scale) as f32
                })
                .collect();
            (state, inputs)
        };
        let computed = step(&system, &mut draw);
        assert_eq!(computed.check(name), 0, "{name}");
        let worst = computed
            .expected
            .iter()
            .flatten()
            .map(|bounded| bounded.error / bounded.value.abs().max(1.0))
            .fold(0.0, f64::max);
        assert!(
            worst < 1e-3,
            "{name}: the bound is {worst:e}, which says nothing"
        );
    }
}

/// Systems of one launch.
const SYSTEMS: usize = 25;

/// All codes in one kernel, each over [`LANES`] instances: `y[system][lane][result]`, from
/// `x[system][lane][input]`.
fn run_on(device: &Device, all: &[Computed]) -> Vec<Vec<Vec<f32>>> {
    let [inputs, results] = [2, 2];
    let mut body = format!(
        "@compute @workgroup_size({LANES})\nfn main(@builtin(global_invocation_id) id: vec3<u32>) {{\n    let k = id.x;\n    \
         if k >= params.instances {{ return; }}\n",
    );
    for (number, computed) in all.iter().enumerate() {
        body += "    {\n";
        for input in 0..inputs {
            let _ = writeln!(
                body,
                "    let i{input} = x[{}u + {inputs}u * k + {input}u];",
                number * LANES * inputs
            );
        }
        body += computed.code.wgsl();
        for (place, result) in computed.code.wgsl_results().iter().enumerate() {
            let _ = writeln!(
                body,
                "    y[{}u + {results}u * k + {place}u] = {result};",
                number * LANES * results
            );
        }
        body += "    }\n";
    }
    body += "}\n";
    let kernel = Kernel::define("random_systems")
        .read("x", DType::F32)
        .write("y", DType::F32)
        .param("instances", DType::U32);
    let kernel = kernel
        .prelude(Prelude::Math)
        .body(body)
        .native(|_| unreachable!("it runs on GPUs"))
        .expect("valid WGSL");
    let mut plan = PlanBuilder::new("random systems");
    let (x, y) = (
        plan.input("x", DType::F32, all.len() * LANES * inputs),
        plan.output("y", DType::F32, all.len() * LANES * results),
    );
    plan.launch_dynamic(&kernel, &[x, y], &[LANES as u32], 1)
        .expect("records");
    let mut run = plan
        .finish()
        .expect("whole")
        .compile(device)
        .expect("compiles");
    let given: Vec<f32> = all
        .iter()
        .flat_map(|computed| computed.inputs.concat())
        .collect();
    run.input::<f32>(x).copy_from_slice(&given);
    run.run().expect("runs");
    run.output::<f32>(y)
        .chunks(LANES * results)
        .map(|rows| rows.chunks(results).map(<[f32]>::to_vec).collect())
        .collect()
}

#[test]
fn a_thousand_random_systems_compute_the_same_in_f32_on_the_cpu_and_on_devices() {
    let gpu = Device::open_if_present("vulkan:0").expect("absent or usable");
    if gpu.is_none() {
        eprintln!("skipped: vulkan:0 is absent: random systems on a device");
    }
    let (mut random, mut unknown) = (Random(14), 0);
    for round in 0..1000 / SYSTEMS {
        let all: Vec<Computed> = (0..SYSTEMS)
            .map(|_| {
                let (text, system) = random_system(&mut random);
                let mut draw = || {
                    (
                        vec![random.within(-2.0, 2.0) as f32],
                        vec![random.within(-2.0, 2.0) as f32],
                    )
                };
                let computed = step(&system, &mut draw);
                unknown += computed.check(&text);
                computed
            })
            .collect();
        if let Some(gpu) = &gpu {
            for (number, (computed, found)) in all.iter().zip(run_on(gpu, &all)).enumerate() {
                computed.compare(
                    &found,
                    &format!("round {round}, system {number} on {}", gpu.info().id),
                );
            }
        }
    }
    // Most results are known.
    assert!(
        unknown < 1000 * LANES * 2 / 5,
        "{unknown} of {} results are next to a discontinuity",
        1000 * LANES * 2
    );
}
