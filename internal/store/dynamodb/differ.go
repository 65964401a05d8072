package dynamodb

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"weir/internal/store"
)

// differences says in words how a table differs from its definition. Additional indexes
// of the table are ignored.
// The result is empty if the table can be used as it is. TTL is compared by the caller.
func differences(t *store.Table, have *types.TableDescription) (out []string) {
	kinds := map[string]string{}
	for _, d := range have.AttributeDefinitions {
		kinds[aws.ToString(d.AttributeName)] = string(d.AttributeType)
	}
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if is, want := schemaText(have.KeySchema, kinds), keyWords(t.Key); is != want {
		say("its key is %s, should be %s", is, want)
	}
	for i := range t.Indexes {
		ix := &t.Indexes[i]
		is, projects, status, ok := findIndex(have, ix)
		switch {
		case !ok:
			say("%s index %s (%s) is missing", indexKind(ix), ix.Name, keyWords(ix.Key))
			continue
		case schemaText(is, kinds) != keyWords(ix.Key):
			say("the key of index %s is %s, should be %s", ix.Name, schemaText(is, kinds), keyWords(ix.Key))
		}
		if !ix.KeysOnly && projects != types.ProjectionTypeAll {
			say("index %s projects %s, should project ALL", ix.Name, projects)
		}
		if status != "" && status != types.IndexStatusActive && status != types.IndexStatusUpdating {
			say("index %s is %s, and cannot be asked yet", ix.Name, status)
		}
	}
	stream := have.StreamSpecification
	on := stream != nil && aws.ToBool(stream.StreamEnabled)
	switch {
	case t.Stream && !on:
		say("it has no stream, should have one with NEW_AND_OLD_IMAGES")
	case t.Stream && stream.StreamViewType != types.StreamViewTypeNewAndOldImages:
		say("its stream has %s, should have NEW_AND_OLD_IMAGES", stream.StreamViewType)
	}
	return out
}

// findIndex returns an index of the table. status is "" if the service returns none, as
// for local indexes.
func findIndex(have *types.TableDescription, ix *store.Index) (keys []types.KeySchemaElement, p types.ProjectionType, status types.IndexStatus, ok bool) {
	if ix.Local {
		for _, l := range have.LocalSecondaryIndexes {
			if aws.ToString(l.IndexName) == ix.Name {
				return l.KeySchema, projected(l.Projection), "", true
			}
		}
		return nil, "", "", false
	}
	for _, g := range have.GlobalSecondaryIndexes {
		if aws.ToString(g.IndexName) == ix.Name {
			return g.KeySchema, projected(g.Projection), g.IndexStatus, true
		}
	}
	return nil, "", "", false
}

// projected is the type of a projection, in words if the service says none.
func projected(p *types.Projection) types.ProjectionType {
	if p == nil {
		return "nothing that is said"
	}
	return p.ProjectionType
}

// indexKind is what an index is called in messages.
func indexKind(ix *store.Index) string {
	if ix.Local {
		return "local"
	}
	return "global"
}

// schemaText and keyWords write a key the same way: PK (S), SK (S).
func schemaText(keys []types.KeySchemaElement, kinds map[string]string) string {
	var parts []string
	for _, k := range keys {
		name := aws.ToString(k.AttributeName)
		parts = append(parts, name+" ("+kinds[name]+")")
	}
	return strings.Join(parts, ", ")
}

func keyWords(k store.KeySchema) string {
	s := k.Partition.Name + " (" + k.Partition.Type.Descriptor() + ")"
	if k.Sort.Name != "" {
		s += ", " + k.Sort.Name + " (" + k.Sort.Type.Descriptor() + ")"
	}
	return s
}

// orNone is a name in a message, which may be empty.
func orNone(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}
