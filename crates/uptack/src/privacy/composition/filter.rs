//! A filter for budgets that are spent as one goes: queries may be chosen in the light of earlier answers.
