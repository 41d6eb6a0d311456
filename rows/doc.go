// Package rows has the rows of a store's tables as both kinds of stores understand
// them. Each struct is a row of one table; its fields say the columns:
//
//	type Token struct {
//		Name string  `row:"name,key"`
//		Hash []byte  `row:"hash"`
//		Used Instant `row:"used,null"`
//	}
//
// From that a store makes the statements that put a row and read all rows, and what
// copies a store, or salvages a damaged one, walks the tables (Tables). A new side table
// is a struct here, a row of the list of tables, and a CREATE TABLE in each store.
//
// Columns stand in the order of the table's CREATE TABLE in SQLite, where a salvage finds
// them by their place. A test of both stores compares the structs with the tables.
//
// Types of fields are string, []byte, int64, bool, Instant and holdfast.ID; of a split table also
// holdfast.State. Words of a tag, behind the column's name:
//
//	split  (of the first column) the row stands in several tables, or under numbers of names:
//	       a store reads and writes it by hand
//	-      (in the place of a name) it travels with the row, and is no column
//	book   (of the first column) people have set it: a few rows, which a salvage brings first
//	secret the SHA-256 of a secret: a salvage takes no other length. Of other columns it gives up the
//	       value alone, but for the key and for one with final
//	key    the column is a part of the key, which stands first: an integer or a text
//	null   a zero value (of Instant: None) is NULL
//	grows  a row that replaces another gets a higher value than that has
//	final=N  a row that has this value is not replaced
//	exact  a text that programs compare: a copy refuses what a store cannot keep
//	beside (of a number that is no part of the key) that of the bundle of the message that the row
//	       stands beside, whose number is the key's first column
//	of=T   the row goes with that of table T (or "T|U") of the same number: without it, it is nobody's,
//	       and neither copied nor salvaged
package rows
