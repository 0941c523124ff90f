//! Built-in functions of vectors.

use crate::case::Case;
use crate::lanes::{Bound, Bounds, Lanes};
use crate::pool;

/// Operands are at most 8 in size, so that dot products are at most 256: some units in the last
/// place of that.
const SUMS: Bounds = Bounds::same(Bound::Mixed {
    absolute: 256.0 * 4.0 * EPSILON,
    relative: 0.0,
});
/// Square roots and quotients of such sums.
const LENGTHS: Bounds = Bounds::same(Bound::Mixed {
    absolute: 8.0 * EPSILON,
    relative: 8.0 * EPSILON,
});
const NEAREST: Bounds = Bounds::same(Bound::Nearest);
const EPSILON: f64 = 1.0 / 8388608.0;

/// Products and sums of these are exact in f32.
const EIGHTHS: [f64; 8] = [1.0, -2.5, 0.125, 3.0, -0.75, 4.0, 7.5, -8.0];
const ROUGH: [f64; 9] = [0.1, -1.7, 2.3, 3.3, -0.9, 7.7, 0.4, -5.1, 1.9];

pub fn cases() -> Vec<Case> {
    let exact = pool::rows2::<f32>(&EIGHTHS, &EIGHTHS);
    let rough = pool::rows2::<f32>(&ROUGH, &ROUGH);
    let mut cases = Vec::new();
    for width in [2, 3, 4] {
        let name = |what: &str| format!("geometry/{what}/vec{width}<f32>");
        let dot = |group: &[Vec<f64>]| vec![group.iter().map(|row| row[0] * row[1]).sum::<f64>()];
        cases.push(
            Lanes::new(format!("{}, exact", name("dot")), width, "dot(x, y)")
                .reducing()
                .near_groups(&exact, NEAREST, dot),
        );
        cases.push(
            Lanes::new(name("dot"), width, "dot(x, y)")
                .reducing()
                .near_groups(&rough, SUMS, dot),
        );
        cases.push(
            Lanes::new(name("length"), width, "length(x)")
                .reducing()
                .near_groups(&rough, LENGTHS, |g| vec![norm(g, |r| r[0])]),
        );
        let distance = Lanes::new(name("distance"), width, "distance(x, y)").reducing();
        cases.push(distance.near_groups(&rough, LENGTHS, |g| vec![norm(g, |r| r[0] - r[1])]));
        let normalize = Lanes::new(name("normalize"), width, "normalize(x)");
        cases.push(normalize.near_groups(&rough, LENGTHS, |g| {
            g.iter().map(|r| r[0] / norm(g, |r| r[0])).collect()
        }));
        cases.push(
            Lanes::new(name("reflect"), width, "reflect(x, y)").near_groups(&exact, NEAREST, |g| {
                let dot = g.iter().map(|r| r[0] * r[1]).sum::<f64>();
                g.iter().map(|r| r[0] - 2.0 * dot * r[1]).collect()
            }),
        );
        let lanes = Lanes::new(name("faceForward"), width, "faceForward(x, y, x + y)");
        cases.push(lanes.near_groups(&exact, NEAREST, |g| {
            // Flips unless the reference and the incident vector point in opposite directions.
            let dot = g.iter().map(|r| (r[0] + r[1]) * r[1]).sum::<f64>();
            g.iter()
                .map(|r| if dot < 0.0 { r[0] } else { -r[0] })
                .collect()
        }));
        let lanes = Lanes::new(
            name("refract"),
            width,
            "refract(normalize(x), normalize(y), 0.75)",
        );
        cases.push(lanes.near_groups(&rough, LENGTHS, |g| refract(g, 0.75)));
    }
    let lanes = Lanes::new(
        "geometry/refract/vec3<f32>, total reflection",
        3,
        "refract(normalize(x), normalize(y), 30.0)",
    );
    cases.push(
        lanes.near_groups(
            &rough
                .iter()
                .filter(|r| r[0] != r[1])
                .cloned()
                .collect::<Vec<_>>(),
            LENGTHS,
            |g| refract(g, 30.0),
        ),
    );
    let cross = |g: &[Vec<f64>]| {
        let term = |i: usize, j: usize| g[i][0] * g[j][1] - g[j][0] * g[i][1];
        vec![term(1, 2), term(2, 0), term(0, 1)]
    };
    cases.push(
        Lanes::new("geometry/cross/vec3<f32>, exact", 3, "cross(x, y)")
            .near_groups(&exact, NEAREST, cross),
    );
    cases.push(
        Lanes::new("geometry/cross/vec3<f32>", 3, "cross(x, y)").near_groups(&rough, SUMS, cross),
    );
    cases.push(
        Lanes::new("geometry/length/f32", 1, "length(x)").near(&rough, LENGTHS, |r| r[0].abs()),
    );
    cases.push(
        Lanes::new("geometry/distance/f32", 1, "distance(x, y)")
            .near(&rough, LENGTHS, |r| (r[0] - r[1]).abs()),
    );
    cases
}

fn norm(group: &[Vec<f64>], of: impl Fn(&[f64]) -> f64) -> f64 {
    group
        .iter()
        .map(|row| of(row) * of(row))
        .sum::<f64>()
        .sqrt()
}

fn refract(group: &[Vec<f64>], ratio: f64) -> Vec<f64> {
    let [incident, normal] = [0, 1].map(|k| {
        group
            .iter()
            .map(|row| row[k] / norm(group, |row| row[k]))
            .collect::<Vec<_>>()
    });
    let cosine = incident
        .iter()
        .zip(&normal)
        .map(|(i, n)| i * n)
        .sum::<f64>();
    let k = 1.0 - ratio * ratio * (1.0 - cosine * cosine);
    let bent = |(i, n): (&f64, &f64)| {
        if k < 0.0 {
            0.0
        } else {
            ratio * i - (ratio * cosine + k.sqrt()) * n
        }
    };
    incident.iter().zip(&normal).map(bent).collect()
}
