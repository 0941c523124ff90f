//! Pictures of a body while a loop runs.

use tectum::{Error, Result};

use crate::body::{Body, BodySpec, Picture};

/// Receives a picture and its number, from 0.
pub type SavePicture = Box<dyn FnMut(u64, Picture) -> Result<()> + Send>;

/// Takes a picture of the body at regular times.
pub struct Film {
    /// Seconds of the body's time from one picture to the next, rounded to whole periods.
    pub every_s: f64,
    /// Width and height in pixels.
    pub size: (u32, u32),
    /// Keeps a picture.
    pub save: SavePicture,
}

/// A film of a loop.
pub(super) struct Filmed {
    film: Film,
    every: u64,
    next: u64,
}

impl Filmed {
    /// Takes a first picture, which is not kept: a body without pictures is refused before the run.
    pub fn new(film: Film, body: &mut dyn Body, spec: &BodySpec) -> Result<Self> {
        let (width, height) = film.size;
        if !(film.every_s > 0.0 && film.every_s.is_finite()) {
            return Err(Error::invalid(format!(
                "frames: every {} s, needs a number above 0",
                film.every_s
            )));
        }
        if body.picture(width, height)?.is_none() {
            return Err(Error::unsupported(format!(
                "frames: body {} has no pictures; bodies from MuJoCo have",
                spec.name
            )));
        }
        Ok(Self {
            every: ((film.every_s / spec.dt_s).round() as u64).max(1),
            next: 0,
            film,
        })
    }

    /// Takes the picture that is due at a tick.
    pub fn tick(&mut self, tick: u64, body: &mut dyn Body) -> Result<()> {
        if !tick.is_multiple_of(self.every) {
            return Ok(());
        }
        let (width, height) = self.film.size;
        if let Some(picture) = body.picture(width, height)? {
            (self.film.save)(self.next, picture)?;
            self.next += 1;
        }
        Ok(())
    }
}
