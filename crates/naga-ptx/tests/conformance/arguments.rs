//! The command line.

/// The parsed options.
#[derive(Debug, Default)]
pub struct Arguments {
    /// Part of the names of the cases to run.
    pub filter: Option<String>,
    /// The one runner to run.
    pub only: Option<String>,
    /// Output file of the results.
    pub json: Option<String>,
    /// Only list the cases.
    pub list: bool,
    /// The case whose PTX is printed.
    pub dump: Option<String>,
}

impl Arguments {
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
        let mut arguments = Arguments::default();
        while let Some(word) = words.next() {
            let mut value = || {
                words
                    .next()
                    .map(Some)
                    .ok_or(format!("{word} needs a value"))
            };
            match word.as_str() {
                "--filter" => arguments.filter = value()?,
                "--only" => arguments.only = value()?,
                "--json" => arguments.json = value()?,
                "--dump" => arguments.dump = value()?,
                "--list" => arguments.list = true,
                // Arguments that `cargo test` passes to every harness.
                "--nocapture" | "--no-capture" | "--quiet" | "-q" => (),
                filter if !filter.starts_with('-') => arguments.filter = Some(word),
                _ => return Err(format!("unknown argument {word}")),
            }
        }
        Ok(arguments)
    }

    pub fn selects(&self, name: &str) -> bool {
        self.filter
            .as_deref()
            .is_none_or(|filter| name.contains(filter))
    }
}
