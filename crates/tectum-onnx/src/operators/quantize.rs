//! Integers that stand for floats by a scale and a zero point, and products of integers.

use super::Family;

pub(super) const FAMILY: Family = &[];
