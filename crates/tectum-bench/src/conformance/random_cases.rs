//! Cases of the random numbers (exact) and the optimiser.

use tectum::kernel::random;

use super::{Case, Data, Expected, Output, Seed, Suite};

pub(super) fn suites() -> Vec<Suite> {
    vec![
        Suite::new("random_bits", |seed: &mut Seed| {
            cases(seed, Data::U32, |plan, key, y| plan.random_bits(key, y))
        }),
        Suite::new("uniform", |seed: &mut Seed| {
            cases(
                seed,
                |words| Data::F32(words.into_iter().map(random::uniform).collect()),
                |plan, key, y| plan.uniform(key, y),
            )
        }),
        Suite::new("normal", |seed: &mut Seed| {
            let normal = |word| random::normal(word, random::normal_table());
            cases(
                seed,
                move |words| Data::F32(words.into_iter().map(normal).collect()),
                |plan, key, y| plan.normal(key, y),
            )
        }),
        Suite::new("adamw", |seed: &mut Seed| {
            seed.sizes(50_000)
                .into_iter()
                .map(|n| adamw(seed, n))
                .collect()
        }),
    ]
}

fn cases(
    seed: &mut Seed,
    convert: impl Fn(Vec<u32>) -> Data,
    record: fn(&mut tectum::PlanBuilder, tectum::View, tectum::View) -> tectum::Result<()>,
) -> Vec<Case> {
    let case = |(n, key): (usize, [u32; 4])| {
        let words = (0..n)
            .map(|i| random::philox([(i / 4) as u32, key[2], key[3], 0], [key[0], key[1]])[i % 4])
            .collect();
        let expected = Output::Exact(convert(words));
        Case::new(
            format!("{n} key {key:x?}"),
            vec![Data::U32(key.to_vec())],
            vec![expected],
            move |plan, x, y| record(plan, x[0], y[0]),
        )
    };
    let sizes = seed.sizes(100_003);
    sizes
        .into_iter()
        .map(|n| case((n, [seed.word(), seed.word(), seed.word(), seed.word()])))
        .collect()
}

/// Ten steps' worth of rounding on each of the update's terms.
const ADAMW_TOLERANCE: f64 = 16.0 / 8_388_608.0;

fn adamw(seed: &mut Seed, n: usize) -> Case {
    let (beta1, beta2) = (0.9f32, 0.999f32);
    let schedule = [
        4e-3f32,
        1.0 / (1.0 - 0.9f32.powi(3)),
        1.0 / (1.0 - 0.999f32.powi(3)),
        1e-2,
    ];
    let [g, w, m] = [(); 3].map(|()| seed.floats(n, -1.0, 1.0));
    let v = seed.floats(n, 0.0, 1.0);
    let [mut new_w, mut new_m, mut new_v] = [(); 3].map(|()| Vec::with_capacity(n));
    for i in 0..n {
        let [g, w, m, v] = [g[i], w[i], m[i], v[i]].map(f64::from);
        let (b1, b2) = (f64::from(beta1), f64::from(beta2));
        let [rate, unbias1, unbias2, decay] = schedule.map(f64::from);
        let m2 = b1 * m + (1.0 - b1) * g;
        let v2 = b2 * v + (1.0 - b2) * g * g;
        let step = m2 * unbias1 / ((v2 * unbias2).sqrt() + 1e-8);
        // A gradient against its moment cancels: the error scales with the terms, not with their
        // sum.
        let scale = (b1 * m).abs() + ((1.0 - b1) * g).abs();
        let step_scale = scale * unbias1 / ((v2 * unbias2).sqrt() + 1e-8);
        new_m.push(Expected {
            value: m2,
            bound: ADAMW_TOLERANCE * scale,
        });
        new_v.push(Expected {
            value: v2,
            bound: ADAMW_TOLERANCE * v2,
        });
        new_w.push(Expected {
            value: w - rate * (step + decay * w),
            bound: ADAMW_TOLERANCE * (w.abs() + rate * step_scale),
        });
    }
    let outputs = vec![
        Output::NearInPlace(w, new_w),
        Output::NearInPlace(m, new_m),
        Output::NearInPlace(v, new_v),
    ];
    Case::new(
        format!("{n}"),
        vec![Data::F32(schedule.to_vec()), Data::F32(g)],
        outputs,
        move |plan, x, y| plan.adamw(x[0], x[1], [y[0], y[1], y[2]], beta1, beta2),
    )
}
