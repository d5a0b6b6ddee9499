"""What is said in the gallery's chats."""

from typing import Final

MIXED_QUESTION: Final = "How do I keep a particle system at the same speed at 60 Hz and at 144 Hz? Show the maths too."
MIXED_THOUGHT: Final = (
    "The user asks about frame rate independence. The step uses a fixed dt of 1/60 while the render loop calls it "
    "once per frame, so at 144 Hz the integration runs 2.4 times as often.\n\n"
    "I should show semi-implicit Euler, the accumulator, and a table of what the error is. Also mention that "
    "interpolation hides the rest, and that a spiral of death must be cut off.\n\n"
    "Let me check: position error of explicit Euler grows linearly with dt, so halving dt halves it."
)
MIXED: Final = r'''# Frame-rate independent particles

The short answer: **step the simulation with a fixed `dt`** and let the renderer *interpolate* between two steps.

Yours takes one per frame, hence 144 Hz; see [Fix your timestep](https://gafferongames.com/post/fix_your_timestep/).

## What goes wrong

With a step of $\Delta t$ the position after one frame is $x_{n+1} = x_n + v_n\,\Delta t$, and the error grows with

$$
e(t) \approx \frac{1}{2}\,\Delta t \int_0^t a(\tau)\,d\tau + \mathcal{O}(\Delta t^2)
$$

so 2.4 times as often is *not* 2.4 times as good: drag $v \leftarrow 0.98\,v$ is applied more often too.

The drag for any step is $k(\Delta t) = k_{60}^{\,60\,\Delta t}$.

| Rate | Step | Error after 10 s | Drag per step | Looks |
|---:|---:|---:|:---:|---|
| 30 Hz | 33.3 ms | 41 cm | 0.960 | jumps at corners |
| 60 Hz | 16.7 ms | 20 cm | 0.980 | as designed |
| 144 Hz | 6.9 ms | 9 cm | 0.992 | too slow without the right drag |
| 240 Hz | 4.2 ms | 5 cm | 0.995 | the same |

## What to do

1. Keep an *accumulator* of real time.
   - Add the frame's time, at most 0.25 s (or a slow frame makes the next one slower).
   - While there is a whole step in it:
     1. take the step
     2. remember the state before
2. Draw between the last two states.
3. Test it:
   - [x] 60 Hz
   - [x] 144 Hz
   - [ ] a laptop that throttles

```python
from dataclasses import dataclass

STEP = 1 / 120
MOST = 0.25  # seconds; a longer frame is cut, or steps pile up for ever


@dataclass
class Clock:
    """Hands out whole steps and keeps what is left of the frame."""

    left: float = 0.0

    def steps(self, frame_s: float) -> int:
        self.left += min(frame_s, MOST)
        count = int(self.left / STEP)
        self.left -= count * STEP
        return count

    @property
    def blend(self) -> float:
        return self.left / STEP  # 0 is the state before, 1 the one now
```

The same in the shader, where `u_blend` comes from `Clock.blend`:

```glsl
vec3 shown = mix(u_before, u_now, u_blend);
```

> **Note.** Interpolation shows the world one step late, 8 ms here. Nobody sees that: games show players 100 ms late.

---

Two more things:

- Random numbers drawn *per step* change with the rate. Draw them per second[^1] instead.
- Collisions: sweep, do not test points. With $|v|\,\Delta t > r$ a particle passes through a wall.

[^1]: A Poisson process with rate $\lambda$ has $P(k) = \frac{(\lambda\,\Delta t)^k e^{-\lambda \Delta t}}{k!}$.
'''
HALF_TABLE: Final = """Here is how they compare:

| Card | VRAM | Bandwidth | Qwen3.5-35B-A3B |
|---|---:|---:|---|
| RTX 3060 | 12 GB | 360 GB/s | experts on CPU |
| RTX 3090 | 24 GB | 936 GB/s | fits at 128K |
| RTX 4070 Ti SU"""
HALF_FENCE: Final = """Put this into `balcony.py`:

```python
def water(plants: list[Plant], day: int) -> float:
    \"\"\"Litres for one day.\"\"\"
    total = 0.0
    for plant in plants:
        if day % plant.every_days == 0:
            total += plant.litres
    retu"""
PICTURE_ANSWER: Final = """## de Havilland Canada DHC-2 Beaver

The radial engine, the high wing with a single strut and the floats make it a **Beaver on floats**.

| Speed | km/h | mph |
|---|---|---|
| Cruise | 230 | 143 |
| Never exceed | 290 | 180 |

For a level turn at bank angle φ the radius is $r = v^2 / (g \\tan φ)$.
"""
WIDE_TABLE: Final = """| Model | Params | Active | Layers | Experts | Context | KV per token | Quant | File | Notes |
|---|---:|---:|---:|---:|---:|---:|---|---:|---|
| Qwen3.5-35B-A3B | 35.1 B | 3.0 B | 40 | 256 | 262,144 | 20 KiB | UD-Q4_K_L | 19.7 GB | the one to begin with |
| Qwen3.5-27B | 27.4 B | 27.4 B | 64 | none | 262,144 | 64 KiB | Q4_K_M | 16.5 GB | dense, slower |
| Qwen3.5-122B-A10B | 122 B | 10 B | 48 | 256 | 262,144 | 24 KiB | Q3_K_M | 58.1 GB | needs 64 GB RAM |

```bash
llama-server --model Qwen3.5-35B-A3B-UD-Q4_K_L.gguf --ctx-size 131072 --n-gpu-layers all --cache-type-k q8_0 --port 8080
```

A link that is long: https://huggingface.co/unsloth/Qwen3.5-35B-A3B-GGUF/resolve/main/Qwen3.5-35B-A3B-UD-Q4_K_L.gguf
"""
EARLIER: Final = (
    ("Collision bug in the particle system", "The overlap test uses the *previous* position, so particles tunnel."),
    ("Explain Gated DeltaNet to me", "It is a linear attention layer with a gate that lets it forget. Each particle…"),
    ("SQL: monthly active users", "`SELECT date_trunc('month', seen), count(DISTINCT user_id) FROM visits`"),
    ("Recipe for two from these leftovers", "Fried rice: rice, egg, peas and a particle of chilli."),
    ("LaTeX: proof of Jensen's inequality", r"For convex $f$ we have $f(E[X]) \le E[f(X)]$."),
    ("Review of my boat game design", "The waves are lovely. The particle spray is what people will remember."),
    ("Übersetzung Mietvertrag", "§ 4: Die Miete ist monatlich im Voraus zu zahlen."),
)
"""Question and answer of each chat in the list."""
