//! Matrix algebra. Matrices are columns one after the other; sums run in order, every step rounded.

use naga::TypeInner;

use crate::scalar::Scalar;
use crate::translator::Translator;
use crate::writer::{Operand, Writer};

impl Translator<'_> {
    /// The product where either side is a matrix and neither a scalar.
    pub fn matrix_product(
        &mut self,
        scalar: Scalar,
        left: (&TypeInner, &[Operand]),
        right: (&TypeInner, &[Operand]),
    ) -> Option<Vec<Operand>> {
        use TypeInner::{Matrix, Vector};
        let (a, b) = (left.1, right.1);
        let w = &mut self.writer;
        match (left.0, right.0) {
            (&Matrix { rows, .. }, Vector { .. }) => {
                Some(matrix_vector(w, scalar, a, rows as usize, b))
            }
            (
                &Matrix {
                    rows,
                    columns: inner,
                    ..
                },
                Matrix { .. },
            ) => {
                let columns = b.chunks(inner as usize);
                Some(
                    columns
                        .flat_map(|column| matrix_vector(w, scalar, a, rows as usize, column))
                        .collect(),
                )
            }
            (Vector { size, .. }, Matrix { .. }) => Some(
                b.chunks(*size as usize)
                    .map(|column| w.dot(scalar, a, column))
                    .collect(),
            ),
            _ => None,
        }
    }
}

fn matrix_vector(
    w: &mut Writer,
    scalar: Scalar,
    matrix: &[Operand],
    rows: usize,
    vector: &[Operand],
) -> Vec<Operand> {
    (0..rows)
        .map(|row| {
            let across: Vec<Operand> = matrix[row..].iter().step_by(rows).copied().collect();
            w.dot(scalar, &across, vector)
        })
        .collect()
}

impl Writer {
    /// Σ aᵢ · bᵢ
    pub fn dot(&mut self, scalar: Scalar, a: &[Operand], b: &[Operand]) -> Operand {
        let first = self.mul(scalar, a[0], b[0]);
        a.iter().zip(b).skip(1).fold(first, |sum, (&a, &b)| {
            let product = self.mul(scalar, a, b);
            self.add(scalar, sum, product)
        })
    }

    /// a · b − c · d
    pub fn cross_term(&mut self, scalar: Scalar, [a, b, c, d]: [Operand; 4]) -> Operand {
        let (ab, cd) = (self.mul(scalar, a, b), self.mul(scalar, c, d));
        self.sub(scalar, ab, cd)
    }

    /// The determinant of a square matrix of `size` columns, by cofactors of its first column.
    pub fn determinant(&mut self, scalar: Scalar, matrix: &[Operand], size: usize) -> Operand {
        if size == 2 {
            return self.cross_term(scalar, [matrix[0], matrix[3], matrix[2], matrix[1]]);
        }
        let mut sum = None;
        for row in 0..size {
            let minor = self.minor(scalar, matrix, size, 0, row);
            let term = self.mul(scalar, matrix[row], minor);
            sum = Some(match sum {
                None => term,
                Some(sum) if row % 2 == 1 => self.sub(scalar, sum, term),
                Some(sum) => self.add(scalar, sum, term),
            });
        }
        sum.expect("invariant: a matrix has rows")
    }

    /// The determinant of what is left without a column and a row.
    fn minor(
        &mut self,
        scalar: Scalar,
        matrix: &[Operand],
        size: usize,
        column: usize,
        row: usize,
    ) -> Operand {
        let left: Vec<Operand> = (0..size * size)
            .filter(|i| i / size != column && i % size != row)
            .map(|i| matrix[i])
            .collect();
        match size {
            2 => left[0],
            _ => self.determinant(scalar, &left, size - 1),
        }
    }

    /// The inverse of a square matrix: its cofactors, transposed, over the determinant.
    pub fn inverse(&mut self, scalar: Scalar, matrix: &[Operand], size: usize) -> Vec<Operand> {
        let determinant = self.determinant(scalar, matrix, size);
        (0..size * size)
            .map(|i| {
                let (column, row) = (i / size, i % size);
                let minor = self.minor(scalar, matrix, size, row, column);
                let cofactor = if (row + column) % 2 == 1 {
                    self.neg(scalar, minor)
                } else {
                    minor
                };
                self.div(scalar, cofactor, determinant)
            })
            .collect()
    }
}
