//! Functions that many types have, from a table.

/// Writes functions that set one option each.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $type:ty;)*) => {
        $($(#[$doc])*
        #[must_use]
        pub fn $name(mut self, $name: $type) -> Self {
            self.$name = $name.into();
            self
        })*
    };
}

/// Gives the variants of an enum their names.
macro_rules! names {
    ($type:ident: $count:literal { $($variant:ident: $name:literal,)* }) => {
        impl $type {
            /// All of them, in order.
            pub const ALL: [Self; $count] = [$(Self::$variant),*];

            /// The name.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The one with a name.
            #[must_use]
            pub fn parse(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|it| it.as_str() == name)
            }
        }
    };
}

pub(crate) use {names, setters};
