//! Travelling waves: sines of the position, from tables for each axis and two rotations.

use super::draw::{draw, key};
use super::shape::Shape;

/// Waves of a field.
pub const WAVES: usize = 4;
/// Phase advance of a wave in a cycle, in radians.
const PHASE_STEP_RAD: f64 = 0.1;
/// Cells per radian along a wave.
const CELLS_PER_RAD: f64 = 3.0;

/// Directions and phases.
#[derive(Debug, Clone)]
pub struct Waves {
    direction: [[f64; 3]; WAVES],
    phase_rad: [f64; WAVES],
}

impl Waves {
    /// The waves of a seed, with random directions on the sphere.
    pub fn new(seed: u64) -> Self {
        let key = key(seed, u64::MAX);
        let number = |index: usize| f64::from(draw(index as u32, key)) / 510.0;
        let direction = std::array::from_fn(|wave| {
            let v: [f64; 3] = std::array::from_fn(|axis| number(4 * wave + axis) + 1e-3);
            let length = v.iter().map(|x| x * x).sum::<f64>().sqrt();
            v.map(|x| x / length)
        });
        Self {
            direction,
            phase_rad: std::array::from_fn(|wave| std::f64::consts::PI * number(4 * wave + 3)),
        }
    }

    /// Sine and cosine of each wave's phase in a cycle.
    pub fn phases(&self, cycle: u64) -> [[f64; 2]; WAVES] {
        self.phase_rad.map(|phase| {
            let (sine, cosine) = (phase + PHASE_STEP_RAD * cycle as f64)
                .rem_euclid(std::f64::consts::TAU)
                .sin_cos();
            [sine, cosine]
        })
    }

    /// For each wave the sines and cosines of its angle along X, then Y, then Z.
    pub fn tables(&self, shape: &Shape) -> Vec<f32> {
        let mut table = Vec::new();
        for direction in &self.direction {
            for (component, size) in direction.iter().zip(shape.cells()) {
                for place in 0..size {
                    let (sine, cosine) = (component * place as f64 / CELLS_PER_RAD).sin_cos();
                    table.extend([sine as f32, cosine as f32]);
                }
            }
        }
        table
    }

    /// The sum of the waves, of amplitude 1, at a cell.
    pub fn at(&self, cell: [usize; 3], phases: &[[f64; 2]; WAVES]) -> f64 {
        let one = |(direction, [sine, cosine]): (&[f64; 3], &[f64; 2])| {
            let angle: f64 = direction
                .iter()
                .zip(cell)
                .map(|(component, place)| component * place as f64 / CELLS_PER_RAD)
                .sum();
            sine * angle.cos() + cosine * angle.sin()
        };
        self.direction.iter().zip(phases).map(one).sum()
    }
}
