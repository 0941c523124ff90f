//! Functions of a term's numbers: angles and rotations.
//!
//! A quaternion (w, x, y, z) with u = (x, y, z) turns vectors of a body's frame into those of the
//! world by the matrix R; angles are those of R = Rz(yaw) Ry(pitch) Rx(roll).

use std::f64::consts::{PI, TAU};

use tectum::{Error, Result};

use super::contract::term::{QuaternionOrder, TermFunction};

/// How far the norm of a quaternion may be from 1.
const NORM_TOLERANCE: f64 = 1e-2;

type Matrix = [[f64; 3]; 3];

/// Replaces the numbers by a function of them; `other` is used on the way.
///
/// # Errors
/// `Data` for a quaternion whose norm is not 1.
pub(super) fn apply(
    function: TermFunction,
    order: QuaternionOrder,
    numbers: &mut Vec<f64>,
    other: &mut Vec<f64>,
) -> Result<()> {
    match function {
        TermFunction::Identity => {}
        TermFunction::Sin => numbers.iter_mut().for_each(|number| *number = number.sin()),
        TermFunction::Cos => numbers.iter_mut().for_each(|number| *number = number.cos()),
        TermFunction::SinCos => {
            other.clear();
            other.extend(numbers.iter().flat_map(|angle| [angle.sin(), angle.cos()]));
            std::mem::swap(numbers, other);
        }
        TermFunction::Wrap => numbers
            .iter_mut()
            .for_each(|number| *number = (*number + PI).rem_euclid(TAU) - PI),
        TermFunction::Norm => {
            let norm = numbers
                .iter()
                .map(|number| number * number)
                .sum::<f64>()
                .sqrt();
            numbers.clear();
            numbers.push(norm);
        }
        _ => {
            other.clear();
            let (takes, _) = function.group().unwrap_or((1, 1));
            for group in numbers.chunks_exact(takes) {
                rotated(function, order, group, other)?;
            }
            std::mem::swap(numbers, other);
        }
    }
    Ok(())
}

fn rotated(
    function: TermFunction,
    order: QuaternionOrder,
    group: &[f64],
    out: &mut Vec<f64>,
) -> Result<()> {
    let matrix = matrix(order, &group[..4])?;
    let transposed = |vector: [f64; 3]| {
        [0, 1, 2].map(|column| {
            (0..3)
                .map(|row| matrix[row][column] * vector[row])
                .sum::<f64>()
        })
    };
    match function {
        TermFunction::Gravity => out.extend(transposed([0.0, 0.0, -1.0])),
        TermFunction::RollPitch => out.extend(&euler(&matrix)[..2]),
        TermFunction::Euler => out.extend(euler(&matrix)),
        TermFunction::Heading => out.push(euler(&matrix)[2]),
        TermFunction::Rotation6d => out.extend(matrix.iter().flat_map(|row| &row[..2])),
        TermFunction::RotationMatrix => out.extend(matrix.iter().flatten()),
        TermFunction::RelativeRotation6d => {
            let second = self::matrix(order, &group[4..8])?;
            // Column `row` of the first matrix with column `column` of the second.
            let product = |row: usize, column: usize| {
                let pairs = matrix.iter().zip(&second);
                pairs
                    .map(|(first, second)| first[row] * second[column])
                    .sum()
            };
            out.extend(
                [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]
                    .map(|(row, column)| -> f64 { product(row, column) }),
            );
        }
        TermFunction::RelativePosition => {
            out.extend(transposed(
                [0, 1, 2].map(|axis| group[7 + axis] - group[4 + axis]),
            ));
        }
        TermFunction::RotateInverse => {
            out.extend(transposed([0, 1, 2].map(|axis| group[4 + axis])));
        }
        TermFunction::Identity
        | TermFunction::Sin
        | TermFunction::Cos
        | TermFunction::SinCos
        | TermFunction::Wrap
        | TermFunction::Norm => {}
    }
    Ok(())
}

/// The matrix of a quaternion, which is normalised.
fn matrix(order: QuaternionOrder, numbers: &[f64]) -> Result<Matrix> {
    let [w, x, y, z] = match order {
        QuaternionOrder::Wxyz => [numbers[0], numbers[1], numbers[2], numbers[3]],
        QuaternionOrder::Xyzw => [numbers[3], numbers[0], numbers[1], numbers[2]],
    };
    let norm = (w * w + x * x + y * y + z * z).sqrt();
    if (norm - 1.0).abs() > NORM_TOLERANCE {
        return Err(Error::data(format!(
            "the quaternion {numbers:?} has the norm {norm}: that of a rotation is 1"
        )));
    }
    let [w, x, y, z] = [w, x, y, z].map(|number| number / norm);
    Ok([
        [
            1.0 - 2.0 * (y * y + z * z),
            2.0 * (x * y - w * z),
            2.0 * (x * z + w * y),
        ],
        [
            2.0 * (x * y + w * z),
            1.0 - 2.0 * (x * x + z * z),
            2.0 * (y * z - w * x),
        ],
        [
            2.0 * (x * z - w * y),
            2.0 * (y * z + w * x),
            1.0 - 2.0 * (x * x + y * y),
        ],
    ])
}

/// Roll, pitch and yaw.
fn euler(matrix: &Matrix) -> [f64; 3] {
    [
        matrix[2][1].atan2(matrix[2][2]),
        (-matrix[2][0]).clamp(-1.0, 1.0).asin(),
        matrix[1][0].atan2(matrix[0][0]),
    ]
}
