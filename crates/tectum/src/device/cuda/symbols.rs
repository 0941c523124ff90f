//! Tables of functions in a library that is loaded at run time: a name that the library lacks is an
//! error, not a panic.

/// Declares a struct with one function pointer per line, and `bind`, which looks all of them up.
macro_rules! symbols {
    ($(#[$meta:meta])* $table:ident { $($name:ident($($argument:ty),* $(,)?) -> $result:ty;)* }) => {
        $(#[$meta])*
        #[expect(non_snake_case, reason = "the library's own names")]
        pub(super) struct $table {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) -> $result,)*
            /// Keeps the functions mapped.
            _library: libloading::Library,
        }

        impl $table {
            /// Looks every function up; the error names the first that is missing.
            ///
            /// # Safety
            /// The library's functions of these names have these signatures.
            unsafe fn bind(library: libloading::Library) -> std::result::Result<Self, &'static str> {
                // SAFETY: the caller guarantees the signatures; the table holds the pointers
                // together with the library.
                unsafe {
                    Ok(Self {
                        $($name: *library.get(stringify!($name)).map_err(|_| stringify!($name))?,)*
                        _library: library,
                    })
                }
            }
        }
    };
}

pub(super) use symbols;
