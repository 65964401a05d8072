package console

import (
	"fmt"
	"math"
	"strings"
)

// picture is a line of values over time, drawn here, so that the page needs no script.
type picture struct {
	Width, Height int
	Path          string
	Says          string // the same in words
}

// The size of a picture, in pixels.
const (
	pictureWidth  = 240
	pictureHeight = 32
)

// drawSteps draws values from left to right in steps, each valid until the next: at is where a value
// begins, from 0 to 1. The lowest is at the bottom and the highest at the top. A value that is not
// a number leaves a hole.
func drawSteps(at, values []float64, low, high float64, says string) *picture {
	p := &picture{Width: pictureWidth, Height: pictureHeight, Says: says}
	if high <= low {
		high = low + 1
	}
	var path strings.Builder
	y, drawn := 0.0, false
	for i, v := range values {
		x := 1 + at[i]*(pictureWidth-2)
		if drawn {
			fmt.Fprintf(&path, "H%.1f", x)
		}
		if drawn = !math.IsNaN(v); !drawn {
			continue
		}
		last := y
		y = pictureHeight - 2 - (v-low)/(high-low)*(pictureHeight-4)
		switch {
		case i == 0 || math.IsNaN(values[i-1]):
			fmt.Fprintf(&path, "M%.1f %.1f", x, y)
		case y != last:
			fmt.Fprintf(&path, "V%.1f", y)
		}
	}
	if drawn {
		fmt.Fprintf(&path, "H%d", pictureWidth-1)
	}
	p.Path = path.String()
	return p
}
