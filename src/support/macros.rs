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

/// A list of names, as it is on the page of a format: without quotation marks and commas.
macro_rules! words {
    ($($name:ident)*) => { [$(stringify!($name)),*] };
}

/// Declares an enum whose variants have a name each, with `ALL`, `parse`, `Display`, and a function that returns the
/// name, which stands after the colon.
macro_rules! names {
    ($(#[$meta:meta])* $vis:vis enum $Enum:ident: $name:ident {
        $($(#[$doc:meta])* $Variant:ident = $text:expr,)*
    }) => {
        $(#[$meta])*
        $vis enum $Enum {
            $($(#[$doc])* $Variant,)*
        }

        // Not every enum needs each of these.
        #[allow(dead_code)]
        impl $Enum {
            /// All of them, in order.
            $vis const ALL: [Self; [$(Self::$Variant),*].len()] = [$(Self::$Variant),*];

            /// The name.
            #[must_use]
            $vis fn $name(self) -> &'static str {
                match self {
                    $(Self::$Variant => $text,)*
                }
            }

            /// The one with a name.
            #[must_use]
            $vis fn parse(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|it| it.$name() == name)
            }
        }

        impl std::fmt::Display for $Enum {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.$name())
            }
        }
    };
}

pub(crate) use {names, setters, words};
