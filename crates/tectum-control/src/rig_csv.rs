//! Reading a recording of the rig.

use std::path::Path;

use tectum::{Error, Result};

/// Columns that a recording must have; others are ignored.
pub const RIG_COLUMNS: [&str; 5] = [
    "la_position",
    "pend_velocity",
    "pend_position",
    "cmd_volts",
    "elapsed",
];

/// An angle that changes by more than this beyond what the velocity explains is a sensor jump.
pub const JUMP_DEG: f64 = 60.0;

/// The angle that the rig reports while its potentiometer is in its dead zone, independent of the
/// pole's motion.
pub const DEAD_ZONE_DEG: f64 = -180.0;

/// A recording of the rig, one number per row in each column.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RigRecording {
    /// Position of the actuator, inches.
    pub la_position_in: Vec<f64>,
    /// Angular velocity of the pole, degrees per second.
    pub pend_velocity_deg_per_s: Vec<f64>,
    /// Angle of the pole, degrees: 0 upright, ±180 hanging.
    pub pend_position_deg: Vec<f64>,
    /// Command, volts.
    pub cmd_volts: Vec<f64>,
    /// Time since the previous row, milliseconds.
    pub elapsed_ms: Vec<f64>,
    /// Whether the row's angle is reliable: false on both sides of a jump, since either may be the
    /// wrong one.
    pub angle_is_valid: Vec<bool>,
    /// Number of jumps found.
    pub jumps: usize,
}

impl RigRecording {
    /// Reads a recording from a comma-separated file with a header line.
    ///
    /// # Errors
    /// A file that cannot be read, a missing column, no rows, a number that is missing, unreadable
    /// or not finite, a time step that is not above 0; with path, line and column.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read(path).map_err(|source| Error::io(path.display(), source))?;
        Self::parse(&text).map_err(|error| error.at(path.display()))
    }

    /// Reads a recording from the text of such a file.
    ///
    /// # Errors
    /// As [`RigRecording::read`], without the path; and `Data` for a column whose numbers are
    /// apparently in another unit.
    pub fn parse(text: &[u8]) -> Result<Self> {
        let mut reader = csv::ReaderBuilder::new()
            .trim(csv::Trim::All)
            .from_reader(text);
        let header = reader.headers().map_err(unreadable)?.clone();
        if header.is_empty() {
            return Err(Error::data("the file is empty"));
        }
        let places = column_indices(&header)?;
        let mut recording = Self::default();
        for record in reader.records() {
            recording.push(row(&record.map_err(unreadable)?, &places)?);
        }
        if recording.is_empty() {
            return Err(Error::data("there are no rows after the header"));
        }
        recording.mask_jumps();
        recording.check_units()?;
        Ok(recording)
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.la_position_in.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.la_position_in.is_empty()
    }

    pub(crate) fn push(&mut self, [position, velocity, angle, volts, elapsed]: [f64; 5]) {
        self.la_position_in.push(position);
        self.pend_velocity_deg_per_s.push(velocity);
        self.pend_position_deg.push(angle);
        self.cmd_volts.push(volts);
        self.elapsed_ms.push(elapsed);
        self.angle_is_valid.push(true);
    }

    fn mask_jumps(&mut self) {
        for i in 1..self.len() {
            let mean_velocity =
                0.5 * (self.pend_velocity_deg_per_s[i - 1] + self.pend_velocity_deg_per_s[i]);
            let explained_deg = mean_velocity * self.elapsed_ms[i] / 1000.0;
            let jump_deg = wrapped_deg(
                self.pend_position_deg[i] - self.pend_position_deg[i - 1] - explained_deg,
            );
            if jump_deg.abs() > JUMP_DEG {
                self.jumps += 1;
                self.angle_is_valid[i - 1] = false;
                self.angle_is_valid[i] = false;
            }
        }
    }
}

/// Plausible times between rows, in milliseconds; outside of it the column is in another unit.
const PLAUSIBLE_MS: std::ops::RangeInclusive<f64> = 1.0..=1000.0;
/// Plausible ratio of the recorded changes of angle to those explained by the velocities.
const PLAUSIBLE_RATIO: std::ops::RangeInclusive<f64> = 0.2..=5.0;

impl RigRecording {
    /// Rejects seconds instead of milliseconds, radians instead of degrees, and similar mistakes.
    fn check_units(&self) -> Result<()> {
        let median = |numbers: &mut dyn Iterator<Item = f64>| {
            let mut numbers: Vec<f64> = numbers.collect();
            numbers.sort_unstable_by(f64::total_cmp);
            numbers[numbers.len() / 2]
        };
        let elapsed = median(&mut self.elapsed_ms.iter().copied());
        if !PLAUSIBLE_MS.contains(&elapsed) {
            let other = if elapsed < *PLAUSIBLE_MS.start() {
                "seconds"
            } else {
                "microseconds"
            };
            return Err(Error::data(format!(
                "line 1, column elapsed: the median step is {elapsed} ms; is it in {other}? it must be in milliseconds"
            )));
        }
        // A hanging pole reads about ±180 degrees, ±π radians.
        let angles = || self.pend_position_deg.iter().map(|angle| angle.abs());
        let turns = || {
            self.pend_position_deg
                .windows(2)
                .map(|pair| pair[1] - pair[0])
        };
        let is_within_pi = angles().all(|angle| angle <= 1.001 * std::f64::consts::PI);
        if is_within_pi && (median(&mut angles()) > 3.0 || turns().any(|turn| turn.abs() > 5.0)) {
            return Err(Error::data(
                "line 1, column pend_position: all angles are within ±3.15, and the pole hangs or turns over; is it in radians? it must be in degrees",
            ));
        }
        // Least-squares fit of the changes of angle to those explained by the velocities.
        let (mut both, mut squares) = (0.0, 0.0);
        for row in
            (1..self.len()).filter(|row| self.angle_is_valid[*row] && self.angle_is_valid[row - 1])
        {
            let explained_deg = 0.5
                * (self.pend_velocity_deg_per_s[row - 1] + self.pend_velocity_deg_per_s[row])
                * self.elapsed_ms[row]
                / 1000.0;
            both += explained_deg
                * wrapped_deg(self.pend_position_deg[row] - self.pend_position_deg[row - 1]);
            squares += explained_deg * explained_deg;
        }
        let ratio = both / squares;
        // A pole that hardly moves allows no conclusion.
        if squares > self.len() as f64 * 0.01 && !PLAUSIBLE_RATIO.contains(&ratio) {
            return Err(Error::data(format!(
                "line 1, column pend_velocity: the pole turns {ratio:.3} times as far as its velocity says; it must be in degrees per second, pend_position in degrees, elapsed in milliseconds"
            )));
        }
        Ok(())
    }
}

fn column_indices(header: &csv::StringRecord) -> Result<[usize; 5]> {
    let mut places = [0; 5];
    for (place, name) in places.iter_mut().zip(RIG_COLUMNS) {
        *place = header
            .iter()
            .position(|column| column == name)
            .ok_or_else(|| {
                let found = header.iter().collect::<Vec<_>>().join(", ");
                Error::data(format!("line 1: column {name} is missing; found: {found}"))
            })?;
    }
    Ok(places)
}

fn row(record: &csv::StringRecord, places: &[usize; 5]) -> Result<[f64; 5]> {
    let line = record.position().map_or(0, csv::Position::line);
    let mut numbers = [0.0; 5];
    for ((number, &place), name) in numbers.iter_mut().zip(places).zip(RIG_COLUMNS) {
        let field = record.get(place).unwrap_or("");
        let parsed = field.parse::<f64>();
        *number = parsed.map_err(|_| {
            Error::data(format!(
                "line {line}, column {name}: {field:?} is not a number"
            ))
        })?;
        if !number.is_finite() {
            return Err(Error::data(format!(
                "line {line}, column {name}: {field} is not finite"
            )));
        }
    }
    if numbers[4] <= 0.0 {
        return Err(Error::data(format!(
            "line {line}, column elapsed: {} is not above 0 ms",
            numbers[4]
        )));
    }
    Ok(numbers)
}

fn unreadable(source: csv::Error) -> Error {
    let line = source.position().map_or(1, csv::Position::line);
    Error::data(format!("line {line}: not a row of this table")).with_source(source)
}

/// An angle in [−180, 180).
pub(crate) fn wrapped_deg(angle_deg: f64) -> f64 {
    (angle_deg + 180.0).rem_euclid(360.0) - 180.0
}

#[cfg(test)]
mod tests {
    use super::RigRecording;

    const HEADER: &str = "la_position,pend_velocity,pend_position,cmd_volts,elapsed";

    #[test]
    fn faulty_recordings_are_refused_with_line_and_column() {
        let faults = [
            ("", "the file is empty"),
            (HEADER, "there are no rows after the header"),
            (
                "la_position,pend_position,cmd_volts,elapsed\n0,0,0,40",
                "line 1: column pend_velocity is missing; found: la_position, pend_position, cmd_volts, elapsed",
            ),
            (
                "0,0,-180,0.1,40\n0,nan,-180,0.1,40",
                "line 3, column pend_velocity: nan is not finite",
            ),
            (
                "0,0,-180,0.1,40\n0,0,-180,volts,40",
                "line 3, column cmd_volts: \"volts\" is not a number",
            ),
            (
                "0,0,,0.1,40",
                "line 2, column pend_position: \"\" is not a number",
            ),
            (
                "0,0,-180,0.1,0",
                "line 2, column elapsed: 0 is not above 0 ms",
            ),
            (
                "0,0,-180,0.1,40\n0,0,-180",
                "line 3: not a row of this table",
            ),
        ];
        for (text, expected) in faults {
            let starts_a_header = text.is_empty() || text.starts_with("la_position");
            let text = if starts_a_header {
                text.to_string()
            } else {
                format!("{HEADER}\n{text}")
            };
            let error = RigRecording::parse(text.as_bytes()).expect_err(expected);
            assert_eq!(error.messages()[0], expected);
        }
    }

    #[test]
    fn defect_22_columns_in_other_units_are_refused() {
        let recording =
            crate::body::rig::simulated(crate::body::rig::RigParameters::default(), 1000, 0.1);
        let text = |scales: [f64; 4]| {
            let rows = (0..recording.len()).map(|row| {
                let [velocity, position] = [
                    recording.pend_velocity_deg_per_s[row] * scales[0],
                    recording.pend_position_deg[row] * scales[1],
                ];
                let [volts, elapsed] = [
                    recording.cmd_volts[row] * scales[2],
                    recording.elapsed_ms[row] * scales[3],
                ];
                format!(
                    "\n{},{velocity},{position},{volts},{elapsed}",
                    recording.la_position_in[row]
                )
            });
            HEADER.to_owned() + &rows.collect::<String>()
        };
        let radians = std::f64::consts::PI / 180.0;
        assert_eq!(
            RigRecording::parse(text([1.0; 4]).as_bytes())
                .expect("right units")
                .len(),
            recording.len()
        );
        for (scales, named) in [
            ([1.0, 1.0, 1.0, 1e-3], "is it in seconds?"),
            ([1.0, 1.0, 1.0, 1e3], "is it in microseconds?"),
            ([radians, radians, 1.0, 1.0], "is it in radians?"),
            ([1.0, radians, 1.0, 1.0], "is it in radians?"),
            ([radians, 1.0, 1.0, 1.0], "column pend_velocity"),
        ] {
            let error = RigRecording::parse(text(scales).as_bytes())
                .expect_err(named)
                .to_string();
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn an_error_names_the_path() {
        let path = std::path::Path::new("no/such/rig.csv");
        let error = RigRecording::read(path).expect_err("there is no such file");
        assert!(error.to_string().starts_with("no/such/rig.csv"), "{error}");
    }

    #[test]
    fn columns_are_found_by_name_and_jumps_are_masked() {
        let text = "elapsed,cmd_volts,pend_position,pend_velocity,la_position,note\n\
                    40,0.1,170,500,1,a\n40,0.1,-170,500,1,b\n40,0.1,-150,500,2,c\n40,0.1,60,500,2,d\n40,0.1,80,500,2,e\n";
        let recording = RigRecording::parse(text.as_bytes()).expect("a good recording");
        assert_eq!(recording.la_position_in, [1.0, 1.0, 2.0, 2.0, 2.0]);
        assert_eq!(recording.jumps, 1);
        assert_eq!(recording.angle_is_valid, [true, true, false, false, true]);
    }
}
