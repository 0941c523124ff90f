//! Recordings of a plant: its observations and inputs, row by row, with their times.

use std::path::Path;

use tectum::{Error, Result};
use tectum_equations::{Dimension, System, Unit};

/// Units of columns, for messages.
const UNITS: &str = "m, g, s, A, K, N, J, W, V, Hz, rad, … with prefixes, deg, in, min, rpm, and products such as kg*m/s^2";

/// How a column of a file is called and in which unit it is, where that is not the plant's own.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// The observation or input; or `time`, or `elapsed` since the row before.
    pub name: String,
    /// The header of the column.
    pub header: String,
    /// Its unit; that of the plant, or seconds for `time` and milliseconds for `elapsed`, if
    /// absent.
    pub unit: Option<Unit>,
}

/// A recording in base units.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PlantRecording {
    /// Of each observation of the plant its numbers, none for one without a column.
    pub observations: Vec<Option<Vec<f64>>>,
    /// Of each input its numbers; the one of a row acts from its time to that of the next.
    pub inputs: Vec<Vec<f64>>,
    /// Seconds since the row before; 0 for the first.
    pub elapsed_s: Vec<f64>,
}

impl Column {
    /// Reads `NAME=HEADER` or `NAME=HEADER:UNIT`.
    ///
    /// # Errors
    /// `Invalid` for another form or an unknown unit.
    pub fn parse(text: &str) -> Result<Self> {
        let (name, rest) = text.split_once('=').ok_or_else(|| {
            Error::invalid(format!(
                "column {text:?}: it has the form NAME=HEADER or NAME=HEADER:UNIT"
            ))
        })?;
        let (header, unit) = rest
            .rsplit_once(':')
            .map_or((rest, None), |(header, unit)| (header, Some(unit)));
        let known = |unit: &str| {
            Unit::parse(unit).ok_or_else(|| {
                Error::invalid(format!(
                    "column {name}: the unit {unit:?} is unknown; known: {UNITS}"
                ))
            })
        };
        Ok(Self {
            name: name.trim().to_owned(),
            header: header.trim().to_owned(),
            unit: unit.map(str::trim).map(known).transpose()?,
        })
    }
}

/// A column that was found: its place, its header, and one of its unit in base units.
struct Found {
    place: usize,
    header: String,
    scale: f64,
}

impl PlantRecording {
    /// Reads a comma-separated file with a header line.
    ///
    /// A column belongs to the observation or input of its name, or to one that `columns` gives it.
    /// `NAME [UNIT]` in the header states its unit. The time is in `time` (s), or in `elapsed`
    /// since the row before (ms).
    ///
    /// # Errors
    /// `Io` or `Data` with file, line and column: a column that is missing, no observation at all,
    /// a number that is missing or not finite, a time that does not advance, a unit of another
    /// dimension, steps of another length than the plant's period.
    pub fn read(path: &Path, system: &System, columns: &[Column]) -> Result<Self> {
        let text = std::fs::read(path).map_err(|source| Error::io(path.display(), source))?;
        Self::parse(&text, system, columns).map_err(|error| error.at(path.display()))
    }

    /// The same from the text of such a file.
    ///
    /// # Errors
    /// As [`PlantRecording::read`], without the path.
    pub fn parse(text: &[u8], system: &System, columns: &[Column]) -> Result<Self> {
        let mut reader = csv::ReaderBuilder::new()
            .trim(csv::Trim::All)
            .from_reader(text);
        let unreadable = |source: csv::Error| {
            let line = source.position().map_or(1, csv::Position::line);
            Error::data(format!("line {line}: not a row of this table")).with_source(source)
        };
        let header: Vec<String> = reader
            .headers()
            .map_err(unreadable)?
            .iter()
            .map(str::to_owned)
            .collect();
        refuse_unknown(system, columns)?;
        let find = |name: &str, unit: Unit| find(&header, columns, name, unit);
        let observed = system
            .observations()
            .iter()
            .map(|observation| find(&observation.name, observation.unit))
            .collect::<Result<Vec<_>>>()?;
        let given = system.inputs().iter().map(|input| {
            find(&input.name, input.unit)?.ok_or_else(|| missing(&input.name, &header))
        });
        let given = given.collect::<Result<Vec<_>>>()?;
        if observed.iter().all(Option::is_none) {
            let names = system
                .observations()
                .iter()
                .map(|observation| observation.name.as_str())
                .collect::<Vec<_>>()
                .join(", ");
            return Err(Error::data(format!(
                "line 1: there is no column of an observation ({names}); found: {}",
                header.join(", ")
            )));
        }
        let seconds = |scale| Unit {
            dimension: Dimension::TIME,
            scale,
        };
        // A run that was exported calls its time so.
        let time = find("time", seconds(1.0))?
            .map_or_else(|| find("time_s", seconds(1.0)), |found| Ok(Some(found)))?;
        let (time, is_elapsed) = match (time, find("elapsed", seconds(1e-3))?) {
            (Some(time), _) => (time, false),
            (None, Some(elapsed)) => (elapsed, true),
            (None, None) => return Err(missing("time or elapsed", &header)),
        };
        let mut recording = Self {
            observations: observed
                .iter()
                .map(|found| found.is_some().then(Vec::new))
                .collect(),
            inputs: vec![Vec::new(); given.len()],
            elapsed_s: Vec::new(),
        };
        let mut last_s = None;
        for record in reader.records() {
            let record = record.map_err(unreadable)?;
            for (numbers, found) in recording.observations.iter_mut().zip(&observed) {
                if let (Some(numbers), Some(found)) = (numbers, found) {
                    numbers.push(number(&record, found)?);
                }
            }
            for (numbers, found) in recording.inputs.iter_mut().zip(&given) {
                numbers.push(number(&record, found)?);
            }
            let now_s = number(&record, &time)?;
            let elapsed_s = if is_elapsed {
                now_s
            } else {
                now_s - last_s.unwrap_or(now_s - system.period_s())
            };
            if elapsed_s <= 0.0 {
                let line = record.position().map_or(0, csv::Position::line);
                return Err(Error::data(format!(
                    "line {line}, column {}: the time does not advance",
                    time.header
                )));
            }
            last_s = Some(now_s);
            recording.elapsed_s.push(elapsed_s);
        }
        recording.check_period(system, if is_elapsed { "elapsed" } else { "time" }, &time)?;
        recording.check_turns(system)?;
        Ok(recording)
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.elapsed_s.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.elapsed_s.is_empty()
    }

    /// Whether a row follows the one before by about a period.
    pub fn is_on_time(&self, row: usize, period_s: f64) -> bool {
        (self.elapsed_s[row] / period_s - 1.0).abs() < 0.25
    }

    /// What is recorded and never changes: an input whose effect cannot be found, an observation
    /// that shows nothing.
    pub fn constant_columns(&self, system: &System) -> Vec<String> {
        let is_constant = |numbers: &[f64]| numbers.iter().all(|number| *number == numbers[0]);
        let inputs = system
            .inputs()
            .iter()
            .zip(&self.inputs)
            .filter(|(_, numbers)| is_constant(numbers));
        let inputs = inputs.map(|(input, _)| {
            format!(
                "input {} is the same in every row: its effect cannot be found",
                input.name
            )
        });
        let observations = system.observations().iter().zip(&self.observations);
        let observations =
            observations.filter(|(_, numbers)| numbers.as_deref().is_some_and(is_constant));
        inputs
            .chain(observations.map(|(observation, _)| {
                format!("observation {} is the same in every row", observation.name)
            }))
            .collect()
    }

    /// Refuses an angle that jumps by a full turn where the plant does not say that it wraps.
    fn check_turns(&self, system: &System) -> Result<()> {
        for (observation, numbers) in system.observations().iter().zip(&self.observations) {
            let Some(numbers) = numbers
                .as_deref()
                .filter(|_| observation.unit.dimension == Dimension::NONE && !observation.wraps)
            else {
                continue;
            };
            let mut steps: Vec<f64> = numbers
                .windows(2)
                .map(|pair| (pair[1] - pair[0]).abs())
                .collect();
            let turns = |step: f64| (0.8..=1.2).contains(&(step / std::f64::consts::TAU));
            let Some(row) = steps.iter().position(|step| turns(*step)) else {
                continue;
            };
            steps.sort_unstable_by(f64::total_cmp);
            let is_angle = ["rad", "deg"].contains(&observation.unit_text.as_str());
            if is_angle && steps[steps.len() / 2] < 0.1 * std::f64::consts::TAU {
                let name = &observation.name;
                return Err(Error::data(format!(
                    "line {}, column {name}: it jumps by a full turn; if it wraps, the plant says so: observe {name}: … wraps",
                    row + 3
                )));
            }
        }
        Ok(())
    }

    fn check_period(
        &self,
        system: &System,
        name: &str,
        Found { header, scale, .. }: &Found,
    ) -> Result<()> {
        let mut sorted = self.elapsed_s.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let Some(median_s) = sorted.get(sorted.len() / 2) else {
            return Err(Error::data("there are no rows after the header"));
        };
        let (ratio, period_s) = (median_s / system.period_s(), system.period_s());
        if (0.95..=1.05).contains(&ratio) {
            return Ok(());
        }
        // The unit in which the times would fit.
        let fits = |unit: f64| (0.5..=2.0).contains(&(scale / ratio / unit));
        let other = match [("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("min", 60.0)]
            .iter()
            .find(|(_, unit)| fits(*unit) && *unit != *scale)
        {
            Some((unit, _)) => {
                format!(": if it is in {unit}, --column {name}={header}:{unit} says so")
            }
            None => "; write the period of the recording in the plant's file".to_owned(),
        };
        let (median_ms, period_ms) = (median_s * 1e3, period_s * 1e3);
        Err(Error::data(format!(
            "line 1, column {header}: the median step is {median_ms:.4} ms, the period of the plant {period_ms:.4} ms{other}"
        )))
    }
}

fn refuse_unknown(system: &System, columns: &[Column]) -> Result<()> {
    let inputs = system.inputs().iter().map(|input| input.name.as_str());
    let known: Vec<&str> = system
        .observations()
        .iter()
        .map(|observation| observation.name.as_str())
        .chain(inputs)
        .chain(["time", "elapsed"])
        .collect();
    match columns
        .iter()
        .find(|column| !known.contains(&column.name.as_str()))
    {
        Some(column) => Err(Error::invalid(format!(
            "column {}: the plant has none of this name; known: {}",
            column.name,
            known.join(", ")
        ))),
        None => Ok(()),
    }
}

fn missing(name: &str, header: &[String]) -> Error {
    Error::data(format!(
        "line 1: column {name} is missing; found: {}",
        header.join(", ")
    ))
}

/// The column of a name, if there is one, with its unit.
fn find(header: &[String], columns: &[Column], name: &str, own: Unit) -> Result<Option<Found>> {
    let given = columns.iter().find(|column| column.name == name);
    let wanted = given.map_or(name, |column| column.header.as_str());
    let split = |text: &str| match text.split_once('[') {
        Some((title, unit)) => (
            title.trim().to_owned(),
            Some(unit.trim_end_matches(']').trim().to_owned()),
        ),
        None => (text.to_owned(), None),
    };
    let Some((place, stated)) = header.iter().enumerate().find_map(|(place, text)| {
        let (title, unit) = split(text);
        (title == wanted || text == wanted).then_some((place, unit))
    }) else {
        return if given.is_some() {
            Err(missing(wanted, header))
        } else {
            Ok(None)
        };
    };
    let stated = stated.map(|unit| {
        Unit::parse(&unit).ok_or_else(|| {
            Error::data(format!(
                "line 1, column {wanted}: the unit {unit:?} is unknown; known: {UNITS}"
            ))
        })
    });
    let unit = given
        .and_then(|column| column.unit)
        .map_or(stated.transpose()?, Some)
        .unwrap_or(own);
    if unit.dimension != own.dimension {
        let kind = |unit: Unit| {
            if unit.dimension == Dimension::NONE {
                "a number or an angle".to_owned()
            } else {
                unit.dimension.to_string()
            }
        };
        return Err(Error::data(format!(
            "line 1, column {wanted}: {name} is {}; the column is {}",
            kind(own),
            kind(unit)
        )));
    }
    Ok(Some(Found {
        place,
        header: wanted.to_owned(),
        scale: unit.scale,
    }))
}

fn number(record: &csv::StringRecord, found: &Found) -> Result<f64> {
    let line = record.position().map_or(0, csv::Position::line);
    let (field, header) = (record.get(found.place).unwrap_or(""), &found.header);
    match field.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number * found.scale),
        Ok(_) => Err(Error::data(format!(
            "line {line}, column {header}: {field} is not finite"
        ))),
        Err(_) => Err(Error::data(format!(
            "line {line}, column {header}: {field:?} is not a number"
        ))),
    }
}
