//! Values of a YAML file, with their places for messages.

use std::collections::HashMap;
use std::path::Path;

use tectum::{Error, Result};
use yaml_rust2::parser::{Event, EventReceiver, Parser};
use yaml_rust2::{Yaml, YamlLoader};

/// The maximum number of values of a file once each alias is the value that it names.
const MAX_VALUES: usize = 1_000_000;

/// Counts the values of a file with its aliases expanded, without expanding them.
#[derive(Default)]
struct ExpandedSize {
    total: usize,
    /// The values of each named node.
    anchors: HashMap<usize, usize>,
    /// Open lists and tables: their anchors, and their values so far.
    open: Vec<(usize, usize)>,
}

impl ExpandedSize {
    fn add(&mut self, anchor: usize, size: usize) {
        if anchor > 0 {
            self.anchors.insert(anchor, size);
        }
        let sum = self.open.last_mut().map_or(&mut self.total, |(_, sum)| sum);
        *sum = sum.saturating_add(size);
    }
}

impl EventReceiver for ExpandedSize {
    fn on_event(&mut self, event: Event) {
        match event {
            Event::Scalar(_, _, anchor, _) => self.add(anchor, 1),
            Event::Alias(anchor) => {
                let size = self.anchors.get(&anchor).copied().unwrap_or(1);
                self.add(0, size);
            }
            Event::SequenceStart(anchor, _) | Event::MappingStart(anchor, _) => {
                self.open.push((anchor, 1));
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some((anchor, size)) = self.open.pop() {
                    self.add(anchor, size);
                }
            }
            _ => {}
        }
    }
}

/// A value and its place. Tags of Python, such as those of tuples and slices, are ignored.
#[derive(Debug, Clone)]
pub struct Node<'y> {
    pub value: &'y Yaml,
    place: String,
}

/// Reads the first document of a file.
///
/// # Errors
/// `Io` or `Data` naming the file.
pub fn read(path: &Path) -> Result<Yaml> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::io(path.display(), error))?;
    let at = |message: String| Error::data(format!("{}: {message}", path.display()));
    let mut size = ExpandedSize::default();
    let parsed = Parser::new_from_str(&text).load(&mut size, true);
    parsed.map_err(|error| at(format!("no YAML: {error}")))?;
    if size.total > MAX_VALUES {
        return Err(at(format!(
            "its aliases expand to more than {MAX_VALUES} values"
        )));
    }
    let mut documents =
        YamlLoader::load_from_str(&text).map_err(|error| at(format!("no YAML: {error}")))?;
    if documents.is_empty() {
        return Err(at("it is empty".to_owned()));
    }
    Ok(documents.swap_remove(0))
}

impl<'y> Node<'y> {
    /// The root of a document.
    pub fn root(value: &'y Yaml, origin: &str) -> Self {
        Self {
            value,
            place: origin.to_owned(),
        }
    }

    /// An error at this place.
    pub fn error(&self, message: impl std::fmt::Display) -> Error {
        Error::data(format!("{}: {message}", self.place))
    }

    /// The value of a key; none if it is absent or null.
    pub fn get(&self, key: &str) -> Option<Self> {
        let value = self.value.as_hash()?.get(&Yaml::String(key.to_owned()))?;
        (!value.is_null()).then(|| Self {
            value,
            place: format!("{}: {key}", self.place),
        })
    }

    /// The value of a key.
    ///
    /// # Errors
    /// `Data` if it is absent.
    pub fn need(&self, key: &str) -> Result<Self> {
        self.get(key)
            .ok_or_else(|| self.error(format_args!("it has no {key}")))
    }

    /// Keys and values of a table, in their order.
    pub fn entries(&self) -> Vec<(String, Self)> {
        let Some(hash) = self.value.as_hash() else {
            return Vec::new();
        };
        hash.iter()
            .filter_map(|(key, value)| {
                let key = key.as_str()?.to_owned();
                let place = format!("{}: {key}", self.place);
                Some((key, Self { value, place }))
            })
            .collect()
    }

    /// The values of a list.
    ///
    /// # Errors
    /// `Data` for another value.
    pub fn items(&self) -> Result<Vec<Self>> {
        let items = self
            .value
            .as_vec()
            .ok_or_else(|| self.error("a list is needed"))?;
        Ok(items
            .iter()
            .enumerate()
            .map(|(index, value)| Self {
                value,
                place: format!("{}[{index}]", self.place),
            })
            .collect())
    }

    /// A number.
    ///
    /// # Errors
    /// `Data` for another value.
    pub fn number(&self) -> Result<f64> {
        let number = match self.value {
            Yaml::Integer(number) => Some(*number as f64),
            Yaml::Real(text) => text.parse().ok(),
            // A number such as 1e-3, which YAML 1.1 reads as text.
            Yaml::String(text) => text.parse().ok(),
            _ => None,
        };
        number.ok_or_else(|| self.error("a number is needed"))
    }

    /// Numbers of a list; one number is a list of one.
    ///
    /// # Errors
    /// `Data` for another value.
    pub fn numbers(&self) -> Result<Vec<f64>> {
        match self.value {
            Yaml::Array(_) => self.items()?.iter().map(Self::number).collect(),
            _ => Ok(vec![self.number()?]),
        }
    }

    /// Whole numbers of a list, 0 or above.
    ///
    /// # Errors
    /// `Data` for another value.
    pub fn indices(&self) -> Result<Vec<usize>> {
        let whole = |item: &Self| {
            let number = item.number()?;
            if number >= 0.0 && number.fract() == 0.0 && number < 1e6 {
                Ok(number as usize)
            } else {
                Err(item.error("a whole number is needed"))
            }
        };
        self.items()?.iter().map(whole).collect()
    }

    /// Texts of a list.
    ///
    /// # Errors
    /// `Data` for another value.
    pub fn texts(&self) -> Result<Vec<String>> {
        self.items()?
            .iter()
            .map(|item| {
                let text = item.value.as_str();
                text.map(str::to_owned)
                    .ok_or_else(|| item.error("a text is needed"))
            })
            .collect()
    }

    /// Pairs of a lower and an upper bound: one, or one for each.
    ///
    /// # Errors
    /// `Data` for another value.
    pub fn bounds(&self) -> Result<Vec<[f64; 2]>> {
        let pair = |node: &Self| match node.numbers()?[..] {
            [low, high] if low <= high => Ok([low, high]),
            _ => Err(node.error("a lower and an upper bound are needed")),
        };
        let items = self.items()?;
        match items.first().map(|item| item.value) {
            Some(Yaml::Array(_)) => items.iter().map(pair).collect(),
            _ => pair(self).map(|pair| vec![pair]),
        }
    }
}
