//! Columns of whole numbers that are read in place: one number for each synapse.

use numpy::PyReadonlyArrayDyn;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::array::{in_place, integers};

/// Columns of arrays of some element types, and their numbers.
macro_rules! columns {
    ($($kind:ident $element:ty),+) => {
        /// A column of whole numbers, as it is in memory.
        pub enum Column<'py> {
            /// One number for all rows.
            Same(i64),
            /// Numbers that were converted, and fit into 32 bits.
            Made(Vec<u32>),
            /// Other numbers that were converted.
            Wide(Vec<i64>),
            $(
                /// An array in row-major order.
                $kind(PyReadonlyArrayDyn<'py, $element>),
            )+
        }

        /// The numbers of a column.
        #[derive(Clone, Copy)]
        pub enum Numbers<'a> {
            Same(i64),
            Made(&'a [u32]),
            Wide(&'a [i64]),
            $($kind(&'a [$element]),)+
        }

        impl<'py> Column<'py> {
            /// An array of whole numbers in row-major order; none for another argument.
            fn in_place(value: &Bound<'py, PyAny>) -> Option<Self> {
                $(
                    if let Ok(array) = value.extract::<PyReadonlyArrayDyn<'py, $element>>() {
                        return in_place(&array, "").is_ok().then_some(Self::$kind(array));
                    }
                )+
                None
            }

            /// Its numbers.
            pub fn numbers(&self) -> PyResult<Numbers<'_>> {
                Ok(match self {
                    Self::Same(number) => Numbers::Same(*number),
                    Self::Made(numbers) => Numbers::Made(numbers),
                    Self::Wide(numbers) => Numbers::Wide(numbers),
                    $(Self::$kind(array) => Numbers::$kind(in_place(array, "a column")?),)+
                })
            }
        }

        impl Numbers<'_> {
            /// How many there are.
            pub fn len(&self) -> usize {
                match self {
                    Self::Same(_) => 1,
                    Self::Made(numbers) => numbers.len(),
                    Self::Wide(numbers) => numbers.len(),
                    $(Self::$kind(numbers) => numbers.len(),)+
                }
            }

            /// The number of a row.
            ///
            /// # Panics
            /// If there is no such row.
            pub fn get(&self, row: usize) -> i64 {
                match self {
                    Self::Same(number) => *number,
                    Self::Made(numbers) => numbers[row].into(),
                    Self::Wide(numbers) => numbers[row],
                    $(Self::$kind(numbers) => numbers[row].into(),)+
                }
            }
        }
    };
}

columns!(U32 u32, I64 i64, U8 u8, I32 i32, Bool bool, I8 i8, U16 u16, I16 i16);

impl<'py> Column<'py> {
    /// Reads an argument: an array of whole numbers in place, others by conversion.
    ///
    /// Raises as [`integers`].
    pub fn new(value: &Bound<'py, PyAny>, what: &str) -> PyResult<Self> {
        if let Some(column) = Self::in_place(value) {
            return Ok(column);
        }
        let numbers: Vec<i64> = integers(value, what)?;
        let is_narrow = numbers.iter().all(|number| u32::try_from(*number).is_ok());
        Ok(if is_narrow {
            Self::Made(numbers.into_iter().map(|number| number as u32).collect())
        } else {
            Self::Wide(numbers)
        })
    }

    /// A column of `count` rows from an argument of as many numbers, or of one for all.
    ///
    /// Raises ValueError for another number of them.
    pub fn of_rows(
        value: Option<&Bound<'py, PyAny>>,
        what: &str,
        otherwise: i64,
        count: usize,
    ) -> PyResult<Self> {
        let Some(value) = value else {
            return Ok(Self::Same(otherwise));
        };
        let column = Self::new(value, what)?;
        let numbers = column.numbers()?;
        match numbers.len() {
            1 => Ok(Self::Same(numbers.get(0))),
            length if length == count => Ok(column),
            length => Err(PyValueError::new_err(format!(
                "{what} has {length} numbers for {count} synapses"
            ))),
        }
    }
}
