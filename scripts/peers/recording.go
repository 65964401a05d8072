package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A change is one record of a gallery's recording, as far as a peer needs it. New is nil for a row that was removed.
type change struct {
	pk, sk string
	new    *image
}

// An image is a row as it is after a change.
type image struct {
	raw    []byte // DynamoDB's JSON
	target string // the partition key of the row whose value counts this one, "" if none does
	value  string // the value's name

	keys [10]string // of the table's indexes, partition and sort key in turn; "" without one
}

// str is an attribute of type S.
type str struct{ S string }

// attributes are those that a peer reads; the others are in the image that it keeps.
type attributes struct {
	EntityType                     str
	AlbumID                        str `json:"albumId"`
	MediaID                        str `json:"mediaId"`
	Interaction                    str `json:"interactionType"`
	GSI1PK, GSI1SK, GSI2PK, GSI2SK str
	GSI3PK, GSI3SK, GSI4PK, GSI4SK str
	IsPublic                       str `json:"isPublic"`
	CreatedAt                      str `json:"createdAt"`
}

type page struct {
	Records []struct {
		EventName string `json:"eventName"`
		Dynamodb  struct {
			Keys     struct{ PK, SK str }
			NewImage jsontext.Value
		} `json:"dynamodb"`
	}
}

// readChanges calls each for every change of a recording, in order, with its number from 0 on.
// A change is valid until each returns.
func readChanges(path string, each func(n int, c change) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<20)
	var p page
	for n, line := 0, 1; ; line++ {
		text, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(bytes.TrimSpace(text)) == 0 {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		p.Records = p.Records[:0]
		if err := json.Unmarshal(text, &p); err != nil {
			return fmt.Errorf("%s:%d: %w", path, line, err)
		}
		for _, r := range p.Records {
			c := change{pk: r.Dynamodb.Keys.PK.S, sk: r.Dynamodb.Keys.SK.S}
			if r.EventName != "REMOVE" {
				if c.new, err = readImage(r.Dynamodb.NewImage); err != nil {
					return fmt.Errorf("%s:%d: %w", path, line, err)
				}
			}
			if err := each(n, c); err != nil {
				return err
			}
			n++
		}
	}
}

func readImage(raw jsontext.Value) (*image, error) {
	var a attributes
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, err
	}
	i := &image{raw: raw, keys: [10]string{
		a.GSI1PK.S, a.GSI1SK.S, a.GSI2PK.S, a.GSI2SK.S, a.GSI3PK.S, a.GSI3SK.S, a.GSI4PK.S, a.GSI4SK.S, a.IsPublic.S, a.CreatedAt.S,
	}}
	switch {
	case a.EntityType.S == "AlbumMedia":
		i.target, i.value = "ALBUM#"+a.AlbumID.S, "mediaCount"
	case a.EntityType.S == "UserInteraction" && a.Interaction.S == "like":
		i.target, i.value = "MEDIA#"+a.MediaID.S, "likeCount"
	case a.EntityType.S == "UserInteraction" && a.Interaction.S == "bookmark":
		i.target, i.value = "MEDIA#"+a.MediaID.S, "bookmarkCount"
	}
	return i, nil
}
