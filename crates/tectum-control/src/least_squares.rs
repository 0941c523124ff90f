//! Least squares with few unknowns, by Levenberg-Marquardt, with standard errors that are valid for
//! correlated residuals.

use std::ops::RangeInclusive;

use nalgebra::{DMatrix, DVector, SymmetricEigen};
use tectum::{Error, Result};

/// The maximum number of steps.
const MAX_STEPS: usize = 60;
/// The smallest eigenvalue of a Hessian with a diagonal of 1 at which a combination of unknowns
/// counts as determined: with a tenth of its error, one of two correlated by 0.99999.
const UNDETERMINED: f64 = 1e-5;
/// The fit stops after a step that reduces the sum by less than this fraction.
const MIN_GAIN: f64 = 1e-9;

/// A fitted parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct FitParameter {
    /// Where the search starts.
    pub start: f64,
    /// The step of one-sided differences.
    pub step: f64,
    /// The allowed values.
    pub range: RangeInclusive<f64>,
}

impl FitParameter {
    /// The value plus or minus its step, whichever is in its range.
    fn moved(&self, value: f64) -> f64 {
        if value + self.step <= *self.range.end() {
            value + self.step
        } else {
            value - self.step
        }
    }
}

/// The result of a fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// The unknowns.
    pub values: Vec<f64>,
    /// The standard error of each; infinite for an unknown without influence, which keeps its
    /// value.
    pub errors: Vec<f64>,
    /// Sum of the squared residuals.
    pub sum: f64,
    /// Unknowns of which the residuals determine only a combination: they can change together, and
    /// the errors say nothing of it.
    pub together: Vec<usize>,
}

/// Minimises the sum of squared residuals over the unknowns.
///
/// `residuals` gives them in clusters, always of the same sizes: residuals of different clusters
/// are treated as independent, those of one are not, so the errors are those of the sandwich H⁻¹(Σ
/// gₖgₖᵀ)H⁻¹ over clusters k. An unknown without influence on any residual keeps its value.
///
/// # Errors
/// `Invalid` for a start outside its range; what `residuals` reports; `Data` if a residual is not
/// finite at the start, or if the normal equations are singular.
///
/// # Source
/// Marquardt, SIAM J. 11 (1963); Liang and Zeger, Biometrika 73 (1986) for the errors.
pub fn fit(
    unknowns: &[FitParameter],
    mut residuals: impl FnMut(&[f64]) -> Result<Vec<Vec<f64>>>,
) -> Result<Fit> {
    let n = unknowns.len();
    if let Some(place) = unknowns
        .iter()
        .position(|unknown| !unknown.range.contains(&unknown.start))
    {
        let FitParameter { start, range, .. } = &unknowns[place];
        return Err(Error::invalid(format!(
            "least squares: unknown {place} starts at {start}, outside {range:?}"
        )));
    }
    let mut values: Vec<f64> = unknowns.iter().map(|unknown| unknown.start).collect();
    let mut here = residuals(&values)?;
    let mut sum = squares(&here);
    if !sum.is_finite() {
        return Err(Error::data(
            "least squares: a residual is not finite at the start",
        ));
    }
    let mut damping = 1e-3;
    let mut normal = Normal::of(&mut residuals, &values, unknowns, &here)?;
    for _ in 0..MAX_STEPS {
        let mut damped = normal.hessian.clone();
        (0..n).for_each(|i| damped[i * n + i] *= 1.0 + damping);
        let step = solve(&damped, &normal.gradient)
            .ok_or_else(|| Error::data("least squares: the normal equations are singular"))?;
        let next = values.iter().zip(&step).zip(unknowns);
        let next: Vec<f64> = next
            .map(|((value, step), unknown)| {
                (value - step).clamp(*unknown.range.start(), *unknown.range.end())
            })
            .collect();
        let there = residuals(&next)?;
        let other = squares(&there);
        if other.is_finite() && other < sum {
            let gain = (sum - other) / sum.max(f64::MIN_POSITIVE);
            (values, here, sum) = (next, there, other);
            damping = (damping * 0.3).max(1e-12);
            normal = Normal::of(&mut residuals, &values, unknowns, &here)?;
            if gain < MIN_GAIN {
                break;
            }
        } else if damping > 1e9 {
            break;
        } else {
            damping *= 4.0;
        }
    }
    Ok(Fit {
        errors: normal.errors(n),
        together: normal.together(n),
        values,
        sum,
    })
}

fn squares(clusters: &[Vec<f64>]) -> f64 {
    clusters.iter().flatten().map(|r| r * r).sum()
}

/// JᵀJ, Jᵀr, and Jᵀr of each cluster.
struct Normal {
    /// With 1 on the diagonal for an unknown without influence.
    hessian: Vec<f64>,
    has_influence: Vec<bool>,
    gradient: Vec<f64>,
    parts: Vec<Vec<f64>>,
}

impl Normal {
    fn of(
        residuals: &mut impl FnMut(&[f64]) -> Result<Vec<Vec<f64>>>,
        values: &[f64],
        unknowns: &[FitParameter],
        here: &[Vec<f64>],
    ) -> Result<Self> {
        let n = values.len();
        let moved = (0..n)
            .map(|i| {
                let mut next = values.to_vec();
                next[i] = unknowns[i].moved(values[i]);
                residuals(&next)
            })
            .collect::<Result<Vec<_>>>()?;
        let slope = |i: usize, cluster: usize, at: usize| {
            (moved[i][cluster][at] - here[cluster][at]) / (unknowns[i].moved(values[i]) - values[i])
        };
        let (mut hessian, mut gradient, mut parts) = (
            vec![0.0; n * n],
            vec![0.0; n],
            Vec::with_capacity(here.len()),
        );
        for (cluster, residuals) in here.iter().enumerate() {
            let mut part = vec![0.0; n];
            for (at, residual) in residuals.iter().enumerate() {
                for i in 0..n {
                    part[i] += slope(i, cluster, at) * residual;
                    for j in 0..n {
                        hessian[i * n + j] += slope(i, cluster, at) * slope(j, cluster, at);
                    }
                }
            }
            gradient
                .iter_mut()
                .zip(&part)
                .for_each(|(sum, part)| *sum += part);
            parts.push(part);
        }
        let has_influence: Vec<bool> = (0..n).map(|i| hessian[i * n + i] != 0.0).collect();
        (0..n)
            .filter(|i| !has_influence[*i])
            .for_each(|i| hessian[i * n + i] = 1.0);
        Ok(Self {
            hessian,
            has_influence,
            gradient,
            parts,
        })
    }

    /// The unknowns of a direction in which the residuals hardly change: the eigenvector of the
    /// smallest eigenvalue of the Hessian with a diagonal of 1.
    fn together(&self, n: usize) -> Vec<usize> {
        let scale: Vec<f64> = (0..n).map(|i| self.hessian[i * n + i].sqrt()).collect();
        let scaled = DMatrix::from_fn(n, n, |i, j| self.hessian[i * n + j] / (scale[i] * scale[j]));
        if scaled.iter().any(|number| !number.is_finite()) {
            return Vec::new();
        }
        let SymmetricEigen {
            eigenvectors,
            eigenvalues,
        } = scaled.symmetric_eigen();
        if n == 0 || eigenvalues.min() > UNDETERMINED {
            return Vec::new();
        }
        let direction = eigenvectors.column(eigenvalues.imin());
        (0..n)
            .filter(|i| direction[*i].abs() > 0.02 && self.has_influence[*i])
            .collect()
    }

    /// The square roots of the sandwich's diagonal; infinite where an unknown has no influence.
    fn errors(&self, n: usize) -> Vec<f64> {
        let column = |i: usize| {
            let unit: Vec<f64> = (0..n).map(|j| f64::from(u8::from(i == j))).collect();
            solve(&self.hessian, &unit)
        };
        (0..n)
            .map(|i| match column(i) {
                Some(row) if self.has_influence[i] => self
                    .parts
                    .iter()
                    .map(|part| {
                        part.iter()
                            .zip(&row)
                            .map(|(g, h)| g * h)
                            .sum::<f64>()
                            .powi(2)
                    })
                    .sum::<f64>()
                    .sqrt(),
                _ => f64::INFINITY,
            })
            .collect()
    }
}

/// Solves A x = b, A row by row; none if A is singular.
pub fn solve(a: &[f64], b: &[f64]) -> Option<Vec<f64>> {
    let x = DMatrix::from_row_slice(b.len(), b.len(), a)
        .lu()
        .solve(&DVector::from_column_slice(b))?;
    x.iter()
        .all(|number| number.is_finite())
        .then(|| x.data.into())
}

#[cfg(test)]
mod tests {
    use std::ops::RangeInclusive;

    use super::{FitParameter, fit, solve};
    use crate::body::uniform::Uniform;

    fn free(start: f64) -> FitParameter {
        FitParameter {
            start,
            step: 1e-6,
            range: f64::MIN..=f64::MAX,
        }
    }

    #[test]
    fn unknowns_that_can_change_together_are_named() {
        let product = fit(&[free(2.0), free(3.0), free(0.0)], |p| {
            Ok((0..5)
                .map(|t| vec![p[0] * p[1] * f64::from(t) + p[2] - 7.0 * f64::from(t)])
                .collect())
        });
        assert_eq!(product.expect("it rests").together, [0, 1]);
        let apart = fit(&[free(2.0), free(3.0)], |p| {
            Ok((0..5)
                .map(|t| vec![p[0] * f64::from(t) + p[1] - 7.0 * f64::from(t)])
                .collect())
        });
        assert!(apart.expect("it rests").together.is_empty());
    }

    #[test]
    fn a_decay_is_found_where_it_was_made() {
        // y = a·exp(−b t) without noise: the values exactly, errors of 0.
        let at = |a: f64, b: f64, t: usize| a * (-b * t as f64 / 10.0).exp();
        let found = fit(&[free(1.0), free(1.0)], |p| {
            Ok(vec![
                (0..40)
                    .map(|t| at(p[0], p[1], t) - at(3.0, 0.4, t))
                    .collect(),
            ])
        })
        .expect("it rests");
        assert!(
            (found.values[0] - 3.0).abs() < 1e-6 && (found.values[1] - 0.4).abs() < 1e-6,
            "{found:?}"
        );
        assert!(
            found.sum < 1e-12 && found.errors.iter().all(|error| *error < 1e-5),
            "{found:?}"
        );
    }

    #[test]
    fn errors_are_those_of_the_spread_over_repetitions_though_residuals_hang_together() {
        // The mean of 50 clusters of 10 equal numbers, uniform in ±1: its deviation is √(1/3/50),
        // not √(1/3/500).
        let mut random = Uniform::new(5);
        let data: Vec<f64> = (0..50).map(|_| random.within(1.0)).collect();
        let found = fit(&[free(0.0)], |p| {
            Ok(data.iter().map(|x| vec![p[0] - x; 10]).collect())
        })
        .expect("it rests");
        let expected = (1.0f64 / 3.0 / 50.0).sqrt();
        assert!(
            (found.errors[0] / expected - 1.0).abs() < 0.2,
            "{} for {expected}",
            found.errors[0]
        );
        assert!((found.values[0] - data.iter().sum::<f64>() / 50.0).abs() < 1e-5);
    }

    #[test]
    fn an_unknown_without_influence_keeps_its_value() {
        let found = fit(&[free(1.0), free(7.0)], |p| {
            Ok(vec![vec![p[0] - 3.0], vec![2.0 * (p[0] - 3.0)]])
        })
        .expect("it rests");
        assert!(
            (found.values[0] - 3.0).abs() < 1e-6 && found.values[1] == 7.0,
            "{found:?}"
        );
        assert!(
            found.errors[0] < 1e-5 && found.errors[1] == f64::INFINITY,
            "{found:?}"
        );
    }

    #[test]
    fn a_value_stays_in_its_range() {
        let found = fit(
            &[FitParameter {
                range: 0.0..=2.0,
                ..free(1.0)
            }],
            |p| Ok(vec![vec![p[0] - 3.0]]),
        )
        .expect("it rests");
        assert!(found.values == [2.0], "{found:?}");
    }

    #[test]
    fn a_start_outside_its_range_is_an_error() {
        let empty = FitParameter {
            range: RangeInclusive::new(2.0, 0.0),
            ..free(1.0)
        };
        for unknown in [
            empty,
            FitParameter {
                range: 0.0..=2.0,
                ..free(3.0)
            },
            free(f64::NAN),
        ] {
            assert!(
                fit(&[unknown], |p| Ok(vec![vec![p[0]]]))
                    .expect_err("outside")
                    .to_string()
                    .contains("unknown 0 starts at")
            );
        }
    }

    #[test]
    fn a_start_that_is_not_finite_is_an_error() {
        assert!(
            fit(&[free(1.0)], |p| Ok(vec![vec![p[0] / 0.0]]))
                .expect_err("infinite")
                .to_string()
                .contains("not finite")
        );
        assert_eq!(
            solve(&[0.0, 2.0, 1.0, 0.0], &[4.0, 3.0]),
            Some(vec![3.0, 2.0])
        );
        assert_eq!(solve(&[1.0, 1.0, 1.0, 1.0], &[4.0, 3.0]), None);
    }
}
