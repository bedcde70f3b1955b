//! Fields of dates and times, and aggregates, with their codes and SQL's names.

macro_rules! coded {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $code:literal, $text:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        pub enum $name { $(#[doc = concat!("`", $text, "`")] $variant = $code,)* }

        impl $name {
            /// All members.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            /// The member with this code, if there is one.
            pub const fn from_u8(code: u8) -> Option<$name> {
                match code { $($code => Some($name::$variant),)* _ => None }
            }

            /// The SQL name.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }
    };
}

coded! {
    /// Fields of `extract`, `date_part` and `date_trunc`.
    Unit {
        Microseconds = 1, "microseconds";
        Milliseconds = 2, "milliseconds";
        Second = 3, "second";
        Minute = 4, "minute";
        Hour = 5, "hour";
        Day = 6, "day";
        Week = 7, "week";
        Month = 8, "month";
        Quarter = 9, "quarter";
        Year = 10, "year";
        Decade = 11, "decade";
        Century = 12, "century";
        Millennium = 13, "millennium";
        Dow = 14, "dow";
        Isodow = 15, "isodow";
        Doy = 16, "doy";
        Isoyear = 17, "isoyear";
        Julian = 18, "julian";
        Epoch = 19, "epoch";
        Timezone = 20, "timezone";
        TimezoneHour = 21, "timezone_hour";
        TimezoneMinute = 22, "timezone_minute";
    }
}

coded! {
    /// Aggregates whose transition state lives in the keeper.
    Aggregate {
        Sum = 1, "sum";
        Avg = 2, "avg";
        Min = 3, "min";
        Max = 4, "max";
        BoolAnd = 5, "bool_and";
        BoolOr = 6, "bool_or";
        BitAnd = 7, "bit_and";
        BitOr = 8, "bit_or";
        BitXor = 9, "bit_xor";
        VarPop = 10, "var_pop";
        VarSamp = 11, "var_samp";
        StddevPop = 12, "stddev_pop";
        StddevSamp = 13, "stddev_samp";
        StringAgg = 14, "string_agg";
        Corr = 15, "corr";
        CovarPop = 16, "covar_pop";
        CovarSamp = 17, "covar_samp";
        RegrAvgx = 18, "regr_avgx";
        RegrAvgy = 19, "regr_avgy";
        RegrIntercept = 20, "regr_intercept";
        RegrR2 = 21, "regr_r2";
        RegrSlope = 22, "regr_slope";
        RegrSxx = 23, "regr_sxx";
        RegrSxy = 24, "regr_sxy";
        RegrSyy = 25, "regr_syy";
    }
}

/// What an aggregate does with its arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arguments {
    /// It has one.
    One,
    /// A value, and what goes between it and those before it.
    Joined,
    /// Two, of which none may be NULL; the state takes one after the other.
    Pair,
}

impl Aggregate {
    /// What it does with its arguments.
    pub const fn arguments(self) -> Arguments {
        use Aggregate::*;
        match self {
            Sum | Avg | Min | Max | BoolAnd | BoolOr | BitAnd | BitOr | BitXor | VarPop
            | VarSamp | StddevPop | StddevSamp => Arguments::One,
            StringAgg => Arguments::Joined,
            _ => Arguments::Pair,
        }
    }

    /// Whether the result may be NULL though values were seen.
    pub const fn nullable(self) -> bool {
        use Aggregate::*;
        matches!(
            self,
            VarSamp | StddevSamp | CovarSamp | Corr | RegrR2 | RegrSlope | RegrIntercept
        )
    }

    /// SQL's other names.
    pub const fn aliases(self) -> &'static [&'static str] {
        match self {
            Aggregate::BoolAnd => &["every"],
            Aggregate::VarSamp => &["variance"],
            Aggregate::StddevSamp => &["stddev"],
            _ => &[],
        }
    }
}
