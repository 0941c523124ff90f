//! The equations of a cart with a pole, in SI units.

/// Constants of a cart of mass M with a point mass m on a massless pole of length l.
///
/// With θ = 0 upright and D = M + m sin² θ: ẍ = (F + m l ω² sin θ − m g sin θ cos θ − b ẋ − Q cos
/// θ/l)/D, θ̈ = (−F cos θ + (M+m) g sin θ − m l ω² sin θ cos θ + b ẋ cos θ + (M+m) Q/(m l))/(l D),
/// Q = −c m l² ω the friction torque of the hinge. Both lines share one angle convention, so with F =
/// b = c = 0 energy is conserved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dynamics {
    /// M, kilograms.
    pub cart_kg: f64,
    /// m, kilograms.
    pub pole_kg: f64,
    /// l: of the point mass, or of the point mass that swings like the real pole.
    pub length_m: f64,
    /// g, metres per second squared.
    pub gravity: f64,
    /// b, newtons per (metre per second).
    pub cart_damping: f64,
    /// c: decay rate of the pole's speed, per second.
    pub pole_damping_per_s: f64,
}

/// Position, velocity, angle, angular speed: m, m/s, rad, rad/s.
pub type Motion = [f64; 4];

impl Dynamics {
    /// Accelerations of cart (m/s²) and pole (rad/s²) under a force on the cart (N).
    pub fn accelerations(&self, motion: Motion, force_n: f64) -> (f64, f64) {
        let [_, v, angle, speed] = motion;
        let (sin, cos) = angle.sin_cos();
        let (m, l, g) = (self.pole_kg, self.length_m, self.gravity);
        let d = self.cart_kg + m * sin * sin;
        let torque = self.hinge_torque(speed);
        let drag = self.cart_damping * v;
        let x_rate =
            (force_n + m * l * speed * speed * sin - m * g * sin * cos - drag - torque * cos / l)
                / d;
        let total = self.cart_kg + m;
        let pole = -force_n * cos + total * g * sin - m * l * speed * speed * sin * cos
            + drag * cos
            + total * torque / (m * l);
        (x_rate, pole / (l * d))
    }

    /// The force on the cart (N) under which it accelerates at `acceleration` (m/s²): the force
    /// that a velocity servo must apply.
    pub fn force_for(&self, motion: Motion, acceleration: f64) -> f64 {
        let [_, v, angle, speed] = motion;
        let (sin, cos) = angle.sin_cos();
        let (m, l) = (self.pole_kg, self.length_m);
        let d = self.cart_kg + m * sin * sin;
        acceleration * d - m * l * speed * speed * sin
            + m * self.gravity * sin * cos
            + self.cart_damping * v
            + self.hinge_torque(speed) * cos / l
    }

    /// Kinetic and potential energy in joules, 0 for rest at hanging.
    pub fn energy_j(&self, motion: Motion) -> f64 {
        let [_, v, angle, speed] = motion;
        let (m, l) = (self.pole_kg, self.length_m);
        let cart = 0.5 * (self.cart_kg + m) * v * v + m * l * v * speed * angle.cos();
        cart + 0.5 * m * l * l * speed * speed + m * self.gravity * l * (1.0 + angle.cos())
    }

    fn hinge_torque(&self, speed: f64) -> f64 {
        -self.pole_damping_per_s * self.pole_kg * self.length_m * self.length_m * speed
    }
}

/// One classical Runge-Kutta step of fourth order.
pub fn rk4(motion: Motion, h_s: f64, rate: impl Fn(Motion) -> Motion) -> Motion {
    let ahead = |k: &Motion, h: f64| -> Motion { std::array::from_fn(|i| motion[i] + h * k[i]) };
    let k1 = rate(motion);
    let k2 = rate(ahead(&k1, 0.5 * h_s));
    let k3 = rate(ahead(&k2, 0.5 * h_s));
    let k4 = rate(ahead(&k3, h_s));
    std::array::from_fn(|i| motion[i] + h_s / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]))
}

#[cfg(test)]
mod tests {
    use super::{Dynamics, Motion, rk4};

    fn reference() -> Dynamics {
        Dynamics {
            cart_kg: 1.0,
            pole_kg: 0.1,
            length_m: 0.3,
            gravity: 9.81,
            cart_damping: 0.0,
            pole_damping_per_s: 0.0,
        }
    }

    #[test]
    fn energy_of_the_free_cart_and_pole_is_conserved_for_a_minute() {
        for length_m in [0.3, 0.17] {
            let dynamics = Dynamics {
                length_m,
                ..reference()
            };
            let mut motion: Motion = [0.0, 0.1, 0.3, 1.0];
            let before = dynamics.energy_j(motion);
            let mut worst = 0.0f64;
            for _ in 0..60_000 {
                motion = rk4(motion, 1e-3, |[x, v, angle, speed]| {
                    let (x_rate, speed_rate) = dynamics.accelerations([x, v, angle, speed], 0.0);
                    [v, x_rate, speed, speed_rate]
                });
                worst = worst.max((dynamics.energy_j(motion) / before - 1.0).abs());
            }
            println!("l {length_m} m: relative energy drift over 60 s {worst:.3e}");
            assert!(worst < 1e-8, "l {length_m}: relative drift {worst:.3e}");
        }
    }

    #[test]
    fn the_servo_force_gives_the_demanded_acceleration() {
        let dynamics = Dynamics {
            cart_damping: 0.4,
            pole_damping_per_s: 0.31,
            ..reference()
        };
        for motion in [[0.02, 0.3, 0.4, -3.0], [0.0, -0.2, 2.9, 11.0]] {
            let (x_rate, speed_rate) =
                dynamics.accelerations(motion, dynamics.force_for(motion, 7.5));
            let [_, _, angle, speed] = motion;
            let expected = (9.81 * angle.sin() - 7.5 * angle.cos()) / 0.3 - 0.31 * speed;
            assert!((x_rate - 7.5).abs() < 1e-12, "{x_rate}");
            assert!(
                (speed_rate - expected).abs() < 1e-10,
                "{speed_rate} {expected}"
            );
        }
    }
}
