# SPDX-License-Identifier: Apache-2.0
"""A Streamlit page: what its visitor does is answered over its WebSocket."""

import streamlit as st

st.title("Squares")
name = st.text_input("Name")
if name:
    st.write(f"Hello {name}")
number = st.number_input("Number", value=3, step=1)
st.write(f"{number} squared is {number**2}")
