//! Swing-up of a pole by energy control.

use super::wrapped_rad;

/// Strength of a cart's swing-up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SwingUpSettings {
    /// Swing up at full action until the energy deficit is below this share of m g l, then in
    /// proportion. Default: 0.05.
    pub taper: f64,
    /// The target energy in excess of upright rest, in units of m g l. Default: 0.0.
    pub excess: f64,
    /// Share of the travel beyond which the cart is not driven outward. Default: 0.75.
    pub travel_fraction: f64,
}

impl Default for SwingUpSettings {
    fn default() -> Self {
        Self {
            taper: 0.05,
            excess: 0.0,
            travel_fraction: 0.75,
        }
    }
}

/// A law that brings the pole to exactly the energy of upright rest.
///
/// With the energy e = ½ (l/g) ω² + cos θ − 1, in units of m g l, 0 at upright rest and −2 at
/// hanging: a torque changes it at the rate ω u, so u ∝ −e sign ω. A cart whose *velocity* is
/// commanded changes it through the pole's speed relative to the hinge's motion, p = ω + v cos θ/l,
/// at a rate of v sin θ (g cos θ − l ω²), so v ∝ −e sign(sin θ (g cos θ − l ω²)).
///
/// # Source
/// Åström and Furuta, "Swinging up a pendulum by energy control", Automatica 36 (2000); the
/// velocity form is derived here.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SwingUp {
    /// A motor at the hinge; state: angle, speed.
    Torque {
        /// l/g of the equivalent point mass, seconds squared.
        length_over_gravity_s2: f64,
    },
    /// A cart with a velocity servo; state: position, velocity, angle, speed.
    CartVelocity {
        /// l, metres.
        length_m: f64,
        /// g, metres per second squared.
        gravity: f64,
        /// Travel to either side, metres.
        travel_m: f64,
        /// Sign of the velocity that a positive action gives.
        direction: f64,
        /// Strength of the swing-up.
        pumping: SwingUpSettings,
    },
}

impl SwingUp {
    /// The pole's angle from upright in a state, in [−π, π).
    pub fn angle_rad(&self, state: &[f64]) -> f64 {
        wrapped_rad(match self {
            Self::Torque { .. } => state[0],
            Self::CartVelocity { .. } => state[2],
        })
    }

    /// The pole's energy in units of m g l: 0 at upright rest, −2 hanging.
    pub fn energy(&self, state: &[f64]) -> f64 {
        match *self {
            Self::Torque {
                length_over_gravity_s2,
            } => energy(length_over_gravity_s2, state[0], state[1]),
            Self::CartVelocity {
                length_m, gravity, ..
            } => {
                let [v, angle, speed] = [state[1], state[2], state[3]];
                energy(
                    length_m / gravity,
                    angle,
                    speed + v * angle.cos() / length_m,
                )
            }
        }
    }

    /// The share of the full action to apply, in −1..1.
    pub fn action_fraction(&self, state: &[f64]) -> f64 {
        match *self {
            Self::Torque {
                length_over_gravity_s2,
            } => {
                let (angle, speed) = (state[0], state[1]);
                let lack = energy_deficit(
                    energy(length_over_gravity_s2, angle, speed),
                    &SwingUpSettings::default(),
                );
                lack * 1f64.copysign(speed)
            }
            Self::CartVelocity {
                length_m,
                gravity,
                travel_m,
                direction,
                pumping,
            } => {
                let [x, angle, speed] = [state[0], state[2], state[3]];
                let lack = energy_deficit(self.energy(state), &pumping);
                let feed = angle.sin() * (gravity * angle.cos() - length_m * speed * speed);
                let wanted = lack * 1f64.copysign(feed);
                let is_outward = wanted * x > 0.0 && x.abs() > pumping.travel_fraction * travel_m;
                if is_outward { 0.0 } else { direction * wanted }
            }
        }
    }
}

fn energy(length_over_gravity_s2: f64, angle: f64, speed: f64) -> f64 {
    0.5 * length_over_gravity_s2 * speed * speed + angle.cos() - 1.0
}

fn energy_deficit(energy: f64, pumping: &SwingUpSettings) -> f64 {
    ((pumping.excess - energy) / pumping.taper).clamp(-1.0, 1.0)
}
