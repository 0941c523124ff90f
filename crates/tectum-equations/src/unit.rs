//! Physical units: checked while a file is parsed, and then erased.

use std::fmt;

/// Names of the base units, in the order of [`Dimension`].
const BASE: [&str; 7] = ["m", "kg", "s", "A", "K", "mol", "cd"];

/// Exponents of the base units, in halves, so that square roots have one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Dimension([i8; 7]);

/// A unit: its dimension, and how many of the base units it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unit {
    /// Exponents of the base units.
    pub dimension: Dimension,
    /// One of this unit in base units.
    pub scale: f64,
}

/// A named unit: name, exponents of m, kg, s, A, scale, and whether it takes prefixes.
type Named = (&'static str, [i8; 4], f64, bool);

const DEGREE: f64 = std::f64::consts::PI / 180.0;

const NAMED: [Named; 21] = [
    ("m", [1, 0, 0, 0], 1.0, true),
    ("g", [0, 1, 0, 0], 1e-3, true),
    ("s", [0, 0, 1, 0], 1.0, true),
    ("A", [0, 0, 0, 1], 1.0, true),
    ("N", [1, 1, -2, 0], 1.0, true),
    ("J", [2, 1, -2, 0], 1.0, true),
    ("W", [2, 1, -3, 0], 1.0, true),
    ("Pa", [-1, 1, -2, 0], 1.0, true),
    ("Hz", [0, 0, -1, 0], 1.0, true),
    ("C", [0, 0, 1, 1], 1.0, true),
    ("V", [2, 1, -3, -1], 1.0, true),
    ("F", [-2, -1, 4, 2], 1.0, true),
    ("S", [-2, -1, 3, 2], 1.0, true),
    ("ohm", [2, 1, -3, -2], 1.0, true),
    ("H", [2, 1, -2, -2], 1.0, true),
    ("T", [0, 1, -2, -1], 1.0, true),
    ("rad", [0, 0, 0, 0], 1.0, true),
    ("deg", [0, 0, 0, 0], DEGREE, false),
    ("inch", [1, 0, 0, 0], 0.0254, false),
    ("min", [0, 0, 1, 0], 60.0, false),
    ("rpm", [0, 0, -1, 0], 6.0 * DEGREE, false),
];

const PREFIXES: [(&str, f64); 7] = [
    ("k", 1e3),
    ("c", 1e-2),
    ("m", 1e-3),
    ("u", 1e-6),
    ("n", 1e-9),
    ("M", 1e6),
    ("G", 1e9),
];

impl Dimension {
    /// That of a plain number.
    pub const NONE: Dimension = Dimension([0; 7]);
    /// That of a time.
    pub const TIME: Dimension = Dimension([0, 0, 2, 0, 0, 0, 0]);

    /// The product of two quantities; `None` if an exponent leaves its range.
    pub fn times(self, other: Dimension) -> Option<Dimension> {
        self.zip(other, i8::checked_add)
    }

    /// The quotient of two quantities.
    pub fn over(self, other: Dimension) -> Option<Dimension> {
        self.zip(other, i8::checked_sub)
    }

    /// The power of a quantity; `None` too if an exponent is not a multiple of a half.
    pub fn power(self, exponent: f64) -> Option<Dimension> {
        let mut powers = [0; 7];
        for (power, halves) in powers.iter_mut().zip(self.0) {
            let exact = f64::from(halves) * exponent;
            let fits = exact.fract() == 0.0 && exact.abs() <= f64::from(i8::MAX);
            *power = fits.then_some(exact as i8)?;
        }
        Some(Dimension(powers))
    }

    fn zip(self, other: Dimension, combine: fn(i8, i8) -> Option<i8>) -> Option<Dimension> {
        let mut exponents = [0; 7];
        for (result, (a, b)) in exponents.iter_mut().zip(self.0.into_iter().zip(other.0)) {
            *result = combine(a, b)?;
        }
        Some(Dimension(exponents))
    }
}

impl fmt::Display for Dimension {
    /// In base units, or the name of a unit that is one of them: `kg*m/s^2` is `N`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NONE {
            return write!(f, "a plain number");
        }
        let named = NAMED.iter().find(|(name, exponents, scale, _)| {
            *scale == 1.0 && *name != "Hz" && dimension(*exponents) == *self
        });
        if let Some((name, ..)) = named {
            return write!(f, "{name}");
        }
        let part = |sign: i8| {
            let factors = BASE
                .iter()
                .zip(self.0)
                .filter(move |(_, halves)| halves.signum() == sign);
            factors.map(|(name, halves)| match halves.abs() {
                2 => (*name).to_owned(),
                whole if whole % 2 == 0 => format!("{name}^{}", whole / 2),
                halves => format!("{name}^{}", f64::from(halves) / 2.0),
            })
        };
        let (above, below) = (part(1).collect::<Vec<_>>(), part(-1).collect::<Vec<_>>());
        let above = if above.is_empty() {
            "1".to_owned()
        } else {
            above.join("*")
        };
        write!(
            f,
            "{above}{}",
            below
                .iter()
                .map(|factor| format!("/{factor}"))
                .collect::<String>()
        )
    }
}

impl Unit {
    /// A plain number.
    pub const NONE: Unit = Unit {
        dimension: Dimension::NONE,
        scale: 1.0,
    };

    /// The unit with a name, such as `N`, `ms` or `deg`.
    pub fn named(name: &str) -> Option<Unit> {
        if let Some(place) = BASE.iter().position(|base| *base == name) {
            let mut exponents = [0; 7];
            exponents[place] = 2;
            return Some(Unit {
                dimension: Dimension(exponents),
                scale: 1.0,
            });
        }
        let found = |name: &str| NAMED.iter().find(|(known, ..)| *known == name);
        if let Some((_, exponents, scale, _)) = found(name) {
            return Some(Unit {
                dimension: dimension(*exponents),
                scale: *scale,
            });
        }
        PREFIXES.iter().find_map(|(prefix, factor)| {
            let (_, exponents, scale, _) =
                found(name.strip_prefix(prefix)?).filter(|(.., takes_prefixes)| *takes_prefixes)?;
            Some(Unit {
                dimension: dimension(*exponents),
                scale: scale * factor,
            })
        })
    }

    /// The product, or with exponent −1 the quotient; `None` if an exponent leaves its range.
    pub fn times(self, other: Unit, exponent: i32) -> Option<Unit> {
        let dimension = self
            .dimension
            .times(other.dimension.power(f64::from(exponent))?)?;
        Some(Unit {
            dimension,
            scale: self.scale * other.scale.powi(exponent),
        })
    }
}

fn dimension([m, kg, s, a]: [i8; 4]) -> Dimension {
    Dimension([2 * m, 2 * kg, 2 * s, 2 * a, 0, 0, 0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_prefixes_are_units() {
        let newton = Unit::named("N").expect("known");
        assert_eq!(
            (
                newton.dimension.to_string(),
                Unit::named("kg").map(|unit| unit.scale)
            ),
            ("N".to_owned(), Some(1.0))
        );
        assert_eq!(
            Unit::named("ms").map(|unit| (unit.scale, unit.dimension)),
            Some((1e-3, Dimension::TIME))
        );
        assert_eq!(Unit::named("min").map(|unit| unit.scale), Some(60.0));
        assert!(
            (Unit::named("deg").expect("known").scale - 0.017_453_292_519_943_295).abs() < 1e-18
        );
        assert_eq!(
            (Unit::named("kdeg"), Unit::named("furlong"), Unit::named("")),
            (None, None, None)
        );
    }

    #[test]
    fn dimensions_multiply_and_have_roots() {
        let speed = Unit::named("m")
            .and_then(|metre| metre.times(Unit::named("s").expect("known"), -1))
            .expect("in range");
        assert_eq!(speed.dimension.to_string(), "m/s");
        assert_eq!(
            speed.dimension.power(2.0).map(|square| square.to_string()),
            Some("m^2/s^2".to_owned())
        );
        assert_eq!(
            speed.dimension.power(0.5).map(|root| root.to_string()),
            Some("m^0.5/s^0.5".to_owned())
        );
        assert_eq!(
            (speed.dimension.power(0.25), speed.dimension.power(100.0)),
            (None, None)
        );
        assert_eq!(
            Dimension::NONE
                .over(Dimension::TIME)
                .map(|rate| rate.to_string()),
            Some("1/s".to_owned())
        );
    }
}
