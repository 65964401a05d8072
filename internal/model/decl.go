package model

import (
	"strings"

	"weir/internal/seq"
)

// modelDecl is a model file as it was read, before anything in it is looked up. A part that cannot be read is reported and left
// out, and reading goes on, so that one run of lint shows as many mistakes as possible.
type modelDecl struct {
	// Tables, the rows in them, and what is derived from them.
	heading `noun:"model"`
	// The name by which commands and URLs call the model: small letters, digits and single hyphens.
	Model word `need:"model: photo-album" name:"model"`
	// The DynamoDB tables, by name.
	Tables named[tableDecl] `need:"tables: {NAME: {key: [PK, SK]}}" name:"table"`
	// The kinds of rows, by name. A row is of exactly one.
	Entities named[entityDecl] `need:"entities: {NAME: {where: ..., key: ..., attributes: ...}}" name:"entity"`
	// What is kept right by itself. Entity.attribute is a tally, moves in steps, or is of the latest of rows; Entity or
	// Entity(label) is a row made from a row; Entity may also be a group.
	Derive derivations
	// How rows of an older form become rows of the model, by the name of each migration.
	Migrate named[migrationDecl] `name:"migration"`
	// The search indexes, by name.
	Search named[searchDecl] `name:"search"`
	// The named queries: what people may ask for.
	Queries named[queryDecl] `name:"query"`
}

// tableDecl is a table as the file has it.
type tableDecl struct {
	// A table, as it exists in DynamoDB.
	heading `noun:"table"`
	// [partition] or [partition, sort]. An attribute that is not a string says its type: {name: number}.
	Key keyDecl `need:"key: [PK, SK]"`
	// The attribute with the expiry, in epoch seconds.
	TTL word `name:"attribute"`
	// The secondary indexes, by name: [partition, sort], or the long form.
	Indexes named[indexDecl] `name:"index"`
	// What the table's stream holds. Leave it out: nearly all that is derived needs both images.
	Stream word `one:"new-and-old-images new-image keys-only" or:"there is no stream of %q"`
}

// indexDecl is an index of a table: a key alone, or a map with a key.
type indexDecl struct {
	// A secondary index in its long form.
	heading `noun:"index"`
	// [partition] or [partition, sort], as of a table.
	Key keyDecl `need:"key: [PK, SK]"`
	// A local index: it shares the table's partition key.
	Local bool
	// What the index holds of each row.
	Projection word `one:"all keys" or:"there is no projection %q"`
}

func (d *indexDecl) short(n node, _ string) { d.Key.read(n, "the key of an index") }

// keyDecl is [partition] or [partition, sort], each with its type where it is no string.
type keyDecl struct {
	pos
	parts []keyPart
}

// keyPart is an attribute of a key. typ is the zero word for a string.
type keyPart struct{ name, typ word }

func (d *keyDecl) read(n node, what string) {
	elems := n.listElements()
	if !n.isList() || len(elems) < 1 || len(elems) > 2 {
		n.reportWrong(what, "a list of one or two attributes, [partition] or [partition, sort]")
		return
	}
	key := keyDecl{pos: n.pos()}
	for _, el := range elems {
		part := keyPart{}
		if el.isMap() {
			for _, e := range el.readEntries(what) {
				part = keyPart{e.name, e.value.readWord("the type of a key attribute")}
			}
		} else {
			part.name = el.readWord(what)
		}
		if !part.name.isGiven() {
			return
		}
		n.r.checkName("attribute", part.name)
		key.parts = append(key.parts, part)
	}
	*d = key
}

// entityDecl is an entity with its attributes and the rules for commands. Attributes keep their order.
type entityDecl struct {
	// A kind of row: how it is known, its keys, its attributes.
	heading `noun:"entity"`
	// The table it is in; needed when there are several.
	Table word
	// How a row of this entity is known. Where weir makes the row, it writes what stands here.
	Where []testDecl `name:"attribute"`
	// A template for each key attribute: text, {names}, and at most one optional [tail]. It builds the key and reads the
	// names out of keys that others wrote. A key attribute that is a declared attribute needs no template.
	Key named[keyTemplateDecl]
	// What the application writes, or, in a row that weir makes, what is stored. Derived attributes are declared under
	// derive alone.
	Attributes named[attributeDecl] `name:"attribute"`
	// The field with the time (RFC 3339 text, or epoch seconds) from which the row is not returned.
	Expires word `type:"time number string any"`
	// Fields whose value one row at a time may have. A command that gives it to a second one is refused.
	Unique []word `type:"string number time"`
	// What a new row gets where its command does not say: {name: $uuid or $now}.
	New []pair `one:"$uuid $now" or:"a new row cannot be given %q"`
	// Objects whose members commands may give in place of attributes: {member: a} stands for the attributes a.*.
	Flatten []pair
	// The idempotency keys of creates are kept in rows of the model's own.
	Once *onceDecl
	// A command that writes a row which passes where takes away the one with other words in its key, and notes a time.
	Supersede *supersedeDecl
}

// hasAttributes reports whether the file has attributes for the entity, perhaps none.
func (d *entityDecl) hasAttributes() bool {
	return d.hasKey("attributes")
}

// templateOf returns the file's template of a key attribute, nil for none.
func (d *entityDecl) templateOf(attr string) *keyTemplateDecl {
	return seq.Find(d.Key, func(k *keyTemplateDecl) bool { return k.name.text == attr })
}

// keyTemplateDecl is the template of a key attribute: a text, or a map.
type keyTemplateDecl struct {
	// A template in its long form.
	heading `noun:"key template"`
	// Text, {names}, and at most one optional [tail].
	Template word `need:"template: \"...#{name}\""`
	// lower: keys are in lower case, as ElectroDB writes them; attributes keep their case.
	Case word `one:"lower" or:"keys are not written in %q"`
}

func (d *keyTemplateDecl) short(n node, what string) { d.Template = n.readText(what) }

// attributeDecl is an attribute: a type alone, or a map. A type may end in "!", which is short for required.
type attributeDecl struct {
	// An attribute in its long form.
	heading `noun:"attribute"`
	// What an attribute holds. A flag is a boolean to people and the text true or false in the table, where it may be an index
	// key. A time is RFC 3339 text. strings and numbers are sets. commas is a text that lists values with commas between them.
	Type word `need:"type: string"`
	// How rows have it, where that is not the form of its type: text of a number; seconds or milliseconds since 1970 of a
	// time.
	As word `of:"number time"`
	// Of a time, the zone of those that name none, by its name in the IANA database: Europe/Berlin. Without it such a time
	// cannot be used.
	Zone word `of:"time"`
	// It has to be there when the application writes the row.
	Required bool
	// The value when none is written, or {attribute: {word: value}} where the word of another attribute says it.
	Default node
	// The only values of a string.
	Enum []word `of:"string any"`
	// The least number. Commands that give a smaller one are refused; rows written in other ways are taken as they are.
	Min node `of:"number"`
	// The longest text, in characters; of a number, the greatest.
	Max node `of:"number string any"`
	// A number is whole, and below 10^27 in size, and a sum can take it. Another number can be added up if it is below 10^12
	// with at most 17 decimals.
	Whole bool `of:"number"`
	// Its values stay in the table: nothing that leaves weir tells them, and nothing that would is allowed to read it.
	Hidden bool
	// Words of an older application, and what they read as: {old: word of the enum}.
	Legacy []pair
	// What it reads as from a time on: {field with the time: word of the enum}.
	After []pair `to:"1" type:"time number"`
	// Of a list, what it stands for where there is none: Entity.field, of all rows whose other key names are this row's.
	Else word `of:"list strings numbers" form:"Entity.field"`
	// Which rows else reads: {name in their key: field of this row}. Equal names need no line.
	By []pair `with:"else"`
	// Commands move it along its enum, never back.
	Forward bool
	// No row has it: it is read from other fields of the row wherever it is named. A path into a map or a list (address.city,
	// tags[0]), size(tags), sum(items[].price), numbers with *, + and - between them, or one time less another.
	Is word
	// Of one time less another, the whole units between them.
	In word `one:"seconds minutes hours days" or:"the time between two times is not counted in %q" with:"is"`
	// It is computed when a command writes the row, or weir makes it: epoch seconds of this time, or of the begin of this part of the
	// calendar in the key of a group.
	From word `of:"number" type:"time"`
	// How much later than from: 24h, or {attribute: {word: 24h}} where the word of another attribute says it.
	Plus node `with:"from"`

	maxLength int // of a text, by its max; -1 for none
}

func (d *attributeDecl) short(n node, _ string) {
	d.Type, d.maxLength = n.readWord("the type of an attribute"), -1
	d.Type.text, d.Required = strings.CutSuffix(d.Type.text, "!")
}

// check reads the max of a text, which is at most 409,600 characters: DynamoDB's limit of a row if each has one byte.
// min and max of a number are numbers of any size.
func (d *attributeDecl) check() {
	d.maxLength = -1
	if d.Type.text == string(TypeNumber) {
		return
	}
	if d.Max.y != nil {
		d.maxLength = d.Max.readNumber(d.describeKey("max"), 1, 400<<10)
	}
	d.Min, d.Max = node{}, node{}
}

// onceDecl says in which rows idempotency keys are kept.
type onceDecl struct {
	// Each create that has an idempotency key makes a row of this entity, in the same transaction; it says which row was made.
	heading `noun:"once"`
	// The entity of the rows that keep keys.
	Of word `need:"of: ENTITY"`
	// The attribute of the new row that holds the idempotency key.
	Key word `need:"key: ATTRIBUTE"`
	// The fields of the row that keeps the key: {field: field of the new row}. Equal names need no line.
	Set []pair
}

// supersedeDecl says which row a command's row replaces, and which attributes that row then takes over.
type supersedeDecl struct {
	// What a row does to another one of the same entity.
	heading `noun:"supersede"`
	// Which rows supersede.
	Where []testDecl `need:"where: {state: DONE}"`
	// The row that goes has the same key, but for these words: {name in the key: word}.
	Row []pair `need:"row: {state: OPEN}"`
	// {list: time}: the list of the row gets the time, each once and in order.
	Append []pair `need:"append: {times: doneAt}" to:"1" type:"time"`
}

// pair is a name and the word it stands for.
type pair struct{ name, value word }

// readPairs reads a map of names to texts.
func (n node) readPairs(what string) []pair {
	return seq.Map(n.readEntries(what), func(e entry) pair { return pair{e.name, e.value.readText(what)} })
}

// readText is readWord, but reports a text that YAML takes for a number or a boolean.
func (n node) readText(what string) word {
	w := n.readWord(what)
	if w.isGiven() && n.y.ShortTag() != "!!str" {
		n.r.addFlaw(w.pos, "put it in quotes", "%s must be a text, not %s", what, w.text)
	}
	return w
}

// namesOrPairs is a map of names to words, or a list of names, each of which stands for itself.
type namesOrPairs []pair

func (list *namesOrPairs) read(n node, what string) {
	if n.isMap() {
		*list = n.readPairs(what)
		return
	}
	for _, w := range n.readWords(what) {
		name := w
		name.text = strings.TrimSuffix(w.text, "?")
		if i := strings.IndexByte(name.text, '='); i > 0 {
			name.text = name.text[:i]
		}
		*list = append(*list, pair{name, w})
	}
}
