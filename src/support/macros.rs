//! Functions that many types have, from a table.

/// Writes functions that set one option each. What has no doc comment sets a public field.
macro_rules! setters {
    ($($name:ident: $type:ty;)*) => {
        $crate::support::macros::setters! {
            $(#[doc = concat!("Sets [`Self::", stringify!($name), "`].")] $name: $type;)*
        }
    };
    ($($(#[$doc:meta])* $name:ident: $type:ty;)*) => {
        $($(#[$doc])*
        #[must_use]
        pub fn $name(mut self, $name: $type) -> Self {
            self.$name = $name.into();
            self
        })*
    };
}

/// Gives the variants of an enum their names, with `ALL`, `parse`, and `as_str` or another function that returns the
/// name. The first form declares the enum, too.
macro_rules! names {
    ($(#[$meta:meta])* $vis:vis enum $type:ident: $count:literal {
        $($(#[$doc:meta])* $variant:ident = $name:literal,)*
    }) => {
        $(#[$meta])*
        $vis enum $type {
            $($(#[$doc])* $variant,)*
        }

        names!($type: $count { $($variant: $name,)* });
    };
    ($type:ident: $count:literal $names:tt) => {
        names!($type: $count, as_str $names);
    };
    ($type:ident: $count:literal, $get:ident { $($variant:ident: $name:literal,)* }) => {
        impl $type {
            /// All of them, in order.
            pub const ALL: [Self; $count] = [$(Self::$variant),*];

            /// The name.
            #[must_use]
            pub fn $get(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The one with a name.
            #[must_use]
            pub fn parse(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|it| it.$get() == name)
            }
        }
    };
}

pub(crate) use {names, setters};
